/** `{{sessions.NAME.result}}` in the prompt of a session that is added by hand: which sessions are meant. */
import { see } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { ancestorsOf } from '../../core/graph.ts';
import type { PromptReference, SessionId } from '../../core/group.ts';
import { sessionLabel, sessionNumber } from '../../core/id.ts';
import type { GroupState } from '../../core/state.ts';
import { nearest } from '../../template/nearest.ts';
import type { LaterPlace } from '../../template/render.ts';
import { parseAccess } from '../../template/workflow/session-references.ts';
import type { Hint } from '../../template/workflow/text.ts';
import { noBranchFault } from '../../template/workflow/work-settings.ts';

/**
 * The references of a session with these dependencies. Fails with `usage` for a session that is unknown, or that does
 * not surely come before: its result would not be there.
 */
export function referencesOf(
  state: GroupState,
  places: readonly LaterPlace[],
  dependsOn: readonly SessionId[],
): Result<PromptReference[]> {
  if (places.length === 0) return ok([]);
  const definitions = new Map([...state.sessions].map(([id, { definition }]) => [id, definition]));
  const ancestors = ancestorsOf(definitions, dependsOn);
  const names = namesOf(state);
  const references: PromptReference[] = [];
  for (const { name, at, length } of places) {
    const found = longestName(name.slice('sessions.'.length), names);
    if (found === undefined) return unknown(name, names);
    const { id, access, label } = found;
    const what = parseAccess(access, label, hint);
    if (!what.ok) return fail('usage', `{{${name}}}: ${what.problem}.`, 'Correct the prompt.');
    if (!ancestors.has(id)) {
      const message = `{{${name}}} stands in the prompt, but the session does not depend on ${label}.`;
      return fail('usage', message, `Add --depends-on ${label}.`);
    }
    const { field, path } = what.value;
    if (field === 'structured' && state.sessions.get(id)?.definition.outputSchema === undefined) {
      const message = `{{${name}}}: session ${label} has no output schema, so its result has no parts.`;
      return fail('usage', message, `Write {{sessions.${label}.result}}.`);
    }
    if (field === 'diffStat' || field === 'branch') {
      const fault = noBranchFault(label, state.sessions.get(id)?.definition.isolate);
      if (fault !== null) return fail('usage', `{{${name}}}: ${fault}.`, 'Correct the prompt.');
    }
    references.push({ at, length, sessionIds: [id], field, ...(path.length === 0 ? {} : { path }) });
  }
  return ok(references);
}

const hint: Hint = (word, known) => {
  const near = nearest(word, [...known]);
  return near === undefined ? '' : `; did you mean "${near}"?`;
};

/** Names and numbers, as in `--depends-on`. */
function namesOf(state: GroupState): Map<string, SessionId> {
  const names = new Map<string, SessionId>();
  for (const [id, { definition }] of state.sessions) {
    names.set(String(sessionNumber(id)), id);
    names.set(sessionLabel(id, undefined), id);
    if (definition.name !== undefined) names.set(definition.name, id);
  }
  return names;
}

/** Names may hold dots, so the longest one that fits counts. */
function longestName(text: string, names: ReadonlyMap<string, SessionId>) {
  for (let end = text.length; end > 0; end = text.lastIndexOf('.', end - 1)) {
    const label = text.slice(0, end);
    const id = names.get(label);
    if (id !== undefined) return { id, label, access: text.slice(end) };
  }
  return undefined;
}

function unknown(name: string, names: ReadonlyMap<string, SessionId>): Result<never> {
  const wanted = name.split('.')[1] ?? '';
  const message = `{{${name}}} stands in the prompt, but the group has no session "${wanted}"`;
  return fail('usage', `${message}${hint(wanted, names.keys())}.`, see('session', 'list', 'GROUP'));
}
