/** One value of `config.yaml` changed in its text, so that comments and order stay as the person wrote them. */
import { isMap, parse, parseDocument } from 'yaml';
import { errorText, fail, ok, type Result } from '../../core/failure.ts';
import { parseUserConfig } from './user-config-schema.ts';

const priceKinds: ReadonlySet<string> = new Set(['input', 'output', 'cacheCreation', 'cacheRead']);

/** Where a setting stands in the file; null = it has no place there. A word of a model may have dots in it. */
export function configKeyPath(key: string): readonly string[] | null {
  if (key === 'onEvent') return ['onEvent'];
  const word = /^prices\.(.+)$/s.exec(key)?.[1];
  if (word === undefined) return null;
  const dot = word.lastIndexOf('.');
  const kind = word.slice(dot + 1);
  return dot > 0 && priceKinds.has(kind) ? ['prices', word.slice(0, dot), kind] : ['prices', word];
}

interface Change {
  readonly keys: readonly string[];
  /** As it was typed. */
  readonly key: string;
  /** Empty = the value is taken out. */
  readonly text: string;
}

/** Fails with `usage` when the text cannot be read as it is, or could not be afterwards. */
export function changedUserConfig(before: string, { keys, key, text }: Change): Result<string> {
  const readable = parseUserConfig(before, 'config.yaml');
  if (!readable.ok) return readable;
  const document = parseDocument(before);
  if (text === '') {
    document.deleteIn(keys);
    for (let above = keys.slice(0, -1); above.length > 0; above = above.slice(0, -1)) {
      const node = document.getIn(above);
      if (isMap(node) && node.items.length === 0) document.deleteIn(above);
    }
  } else {
    const value = valueFor(keys, text);
    if (!value.ok) return fail('usage', `${key} cannot be ${JSON.stringify(text)}: ${value.failure.message}.`, give);
    document.setIn(keys, value.value);
  }
  const after =
    isMap(document.contents) && document.contents.items.length === 0 ? '' : document.toString({ lineWidth: 0 });
  const checked = parseUserConfig(after, 'config.yaml');
  if (checked.ok) return ok(after);
  // The first problem of a text that nobody will see, without its place.
  const [, problem = ''] = checked.failure.message.split('\n');
  const why = problem.replace(/^.*?:\d+:\d+: /, '');
  return fail('usage', `${key} cannot be set so: ${why}.`, give);
}

const give = "Give a command to onEvent, and to a price its parts: prices.opus '{input: 5, output: 25}'.";

function valueFor(keys: readonly string[], text: string): Result<unknown> {
  // A command is taken as it stands, whatever YAML would make of it.
  if (keys[0] === 'onEvent') return ok(text);
  try {
    return ok(parse(text));
  } catch (error) {
    return fail('usage', (errorText(error).split('\n')[0] ?? '').replace(/:$/, ''), '');
  }
}
