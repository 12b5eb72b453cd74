/**
 * claude's requests with `--permission-prompt-tool stdio`: permissions, and the questions of `AskUserQuestion`.
 * Measured: claude ignores a second answer to a request, and one to an unknown request.
 */
import { createHash } from 'node:crypto';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GivenAnswer, Item, ItemAnswer, ItemRequest } from '../core/item.ts';
import { asData } from '../core/text.ts';
import type { JsonObject } from '../store/json.ts';
import { object, objects, text } from './lenient.ts';
import { cleanLine } from './text.ts';

const questionTool = 'AskUserQuestion';
const textChars = 300;
const labelChars = 80;

/** The call of a `can_use_tool` request; undefined for any other request. */
export function callIn(requestId: string, request: unknown): ItemRequest | undefined {
  const { subtype, tool_name, tool_use_id, input, description } = object(request);
  if (subtype !== 'can_use_tool') return undefined;
  const tool = text(tool_name) ?? '';
  const call = { requestId, toolUseId: text(tool_use_id) ?? '', tool, input: object(input) };
  const asked = questionsOf(call.input);
  if (tool === questionTool && asked.length > 0) {
    const all = asked.map(({ question }) => question).join(' / ');
    const options = asked.flatMap(({ labels }) => labels.map((label) => cleanLine(label, labelChars)));
    const counts = asked.map(({ labels }) => labels.length);
    const firstOptions = counts.map((_, index) => 1 + counts.slice(0, index).reduce((sum, count) => sum + count, 0));
    const several = asked.length > 1 ? { firstOptions } : {};
    return { kind: 'question', text: cleanLine(all, textChars), options, ...several, ...call };
  }
  const { command, file_path, url } = call.input;
  const about = text(command) ?? text(file_path) ?? text(url) ?? text(description) ?? '';
  return { kind: 'permission', text: cleanLine(`${tool}: ${about}`, textChars), options: ['allow', 'deny'], ...call };
}

export function itemId(attemptId: string, { requestId }: ItemRequest): string {
  return createHash('sha256').update(`${attemptId} ${requestId}`).digest('hex').slice(0, 8);
}

interface Question {
  readonly question: string;
  readonly labels: readonly string[];
  readonly isMulti: boolean;
}

function questionsOf(input: JsonObject): Question[] {
  return objects(input.questions).map(({ question, options, multiSelect }) => ({
    question: text(question) ?? '',
    labels: objects(options).map(({ label }) => text(label) ?? ''),
    isMulti: multiSelect === true,
  }));
}

export function readAnswer({ id, kind, input }: Item, given: GivenAnswer): Result<ItemAnswer> {
  const { text: words = '', options = [], note, always } = given;
  const noted = note === undefined ? {} : { note };
  if (kind !== 'question') {
    if ((words === 'allow' || words === 'deny') && options.length === 0 && !(always && words === 'deny'))
      return ok({ text: words, ...noted });
    const what =
      always && words === 'deny'
        ? '--always can only be combined with allow'
        : `Item ${id} asks for ${kind === 'guard' ? 'a decision' : 'a permission'}`;
    return fail('usage', `${what}.`, 'Answer with allow or deny. Add a text with --note.');
  }
  if (always || note !== undefined)
    return fail('usage', `Item ${id} is a question, which takes neither --always nor --note.`, 'Give a text.');
  if (options.length === 0) return readWords(id, questionsOf(input), words);
  if (words !== '') return fail('usage', 'Give a text or options, not both.', '');
  return readOptions(id, questionsOf(input), options);
}

function readWords(id: string, questions: readonly Question[], words: string): Result<ItemAnswer> {
  const isVerdict = words === 'allow' || words === 'deny' || words.trim() === '';
  if (isVerdict) return fail('usage', `Item ${id} is a question.`, 'Answer with a text or with --option N.');
  return ok({ text: words, answers: Object.fromEntries(questions.map(({ question }) => [question, words])) });
}

function readOptions(id: string, questions: readonly Question[], options: readonly number[]): Result<ItemAnswer> {
  const answers: Record<string, string> = {};
  let first = 1;
  for (const { question, labels, isMulti } of questions) {
    const chosen = labels.filter((_, index) => options.includes(first + index));
    if (chosen.length === 0 || (chosen.length > 1 && !isMulti)) {
      const range = `${first} to ${first + labels.length - 1}`;
      const many = isMulti ? 'at least one option' : 'one option';
      return fail('usage', `Item ${id} takes ${many} from ${range} for: ${cleanLine(question, textChars)}`, '');
    }
    answers[question] = chosen.join(', ');
    first += labels.length;
  }
  const unknown = options.find((option) => option < 1 || option >= first);
  if (unknown !== undefined) return fail('usage', `Item ${id} has no option ${unknown}.`, `Give 1 to ${first - 1}.`);
  return ok({ text: Object.values(answers).join(' / '), answers });
}

const withdrawnWords = 'The user has not answered this. What the user says otherwise holds.';
const deniedWords = 'The user denied this.';

/** The line for claude's input; null while the item is open. */
export function answerLine({ requestId, input, state, answer }: Item): string | null {
  if (state === 'open') return null;
  const deny = (message: string) => ({ behavior: 'deny', message });
  const response =
    answer === undefined
      ? deny(withdrawnWords)
      : answer.text === 'deny' && answer.answers === undefined
        ? deny(answer.note === undefined ? deniedWords : `${deniedWords} ${answer.note}`)
        : {
            behavior: 'allow',
            updatedInput: answer.answers === undefined ? input : { ...input, answers: answer.answers },
            ...(answer.rules === undefined ? {} : { updatedPermissions: [rulesUpdate(answer.rules)] }),
          };
  const success = { subtype: 'success', request_id: requestId, response };
  return JSON.stringify({ type: 'control_response', response: success });
}

/** For the running claude only: no file of the user or the project is changed. */
function rulesUpdate(rules: readonly string[]): object {
  const parts = rules.map((rule) => /^(\w+)\((.*)\)$/s.exec(rule) ?? [rule, rule]);
  const named = parts.map(([, toolName, ruleContent]) => ({ toolName, ...(ruleContent ? { ruleContent } : {}) }));
  return { type: 'addRules', rules: named, behavior: 'allow', destination: 'session' };
}

/** Part of each quote, so that a later attempt finds it in the conversation. */
function mark(id: string): string {
  return `(item ${id})`;
}

const inputChars = 4_000;

/** The text for the next attempt about an answer that the conversation lacks. */
export function quoteAnswer({ id, kind, text: asked, tool, input, answer }: Item): string {
  if (kind === 'question') {
    const pairs = Object.entries(answer?.answers ?? { [asked]: answer?.text ?? '' });
    const lines = pairs.map(([question, words]) => `Question: ${asData(question)}\nAnswer: ${asData(words)}`);
    return [`The user has answered what you asked ${mark(id)}:`, ...lines].join('\n\n');
  }
  const call = asData(`${tool} ${JSON.stringify(input).slice(0, inputChars)}`);
  const note = answer?.note === undefined ? '' : ` The user adds: ${asData(answer.note)}`;
  const verdict =
    answer?.text === 'allow'
      ? 'The user has allowed it, once. It may have begun before the session was interrupted: look first, then make ' +
        'exactly this call again if it is still needed.'
      : 'The user has denied it. Do not make it again.';
  return `You asked for a permission ${mark(id)}: ${call}\n\n${verdict}${note}`;
}

/** claude's text as the result of an interrupted call. */
const cutOff = /\[Tool call interrupted|doesn't want to proceed with this tool use|\[Request interrupted by user/;

/** What a conversation line says about an item: the call has its result, or the answer was quoted. */
export function answerStateIn(line: string, { id, toolUseId }: Item): 'result' | 'quote' | null {
  if (!line.includes('"type":"user"')) return null;
  if (line.includes(mark(id))) return 'quote';
  const isResult = toolUseId !== '' && line.includes(`"tool_use_id":"${toolUseId}"`);
  return isResult && !cutOff.test(line) ? 'result' : null;
}
