/** Items: questions of a session to the user. Each is answered once, or withdrawn. */

/** `guard`: whether changes of files that guard its result are accepted. */
export type ItemKind = 'permission' | 'question' | 'guard';

/** A tool call of claude that waits for the user, or a finding of ours. */
export type ItemRequest = {
  readonly kind: ItemKind;
  /** One line for the user. */
  readonly text: string;
  /** Labels of the model's proposed answers, of all its questions in order. */
  readonly options: readonly string[];
  /** If there are several questions: the number of each one's first option. */
  readonly firstOptions?: readonly number[];
  /** claude's id of its request; the answer repeats it. */
  readonly requestId: string;
  readonly toolUseId: string;
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
};

/** The answer for claude. `text` is `allow`, `deny`, or the answer to a question. */
export interface ItemAnswer {
  readonly text: string;
  readonly note?: string;
  /** The answer to each question, by its text. */
  readonly answers?: Readonly<Record<string, string>>;
  /** Permission rules that come with it. */
  readonly rules?: readonly string[];
}

/** As the user gave it: words, or numbers of options from 1. */
export interface GivenAnswer {
  readonly text?: string;
  readonly options?: readonly number[];
  readonly note?: string;
  readonly always?: true;
}

/** The user, the default after `answerBy`, the stored answer to the same call, or a permission rule. */
export type AnsweredBy = 'user' | 'deadline' | 'earlier' | 'rule';

export interface Item extends ItemRequest {
  readonly id: string;
  readonly attemptId: string;
  /** ISO 8601. */
  readonly since: string;
  /** ISO 8601: then the default answer applies. */
  readonly answerBy?: string;
  readonly state: 'open' | 'answered' | 'withdrawn';
  readonly answer?: ItemAnswer;
  /** The model may not have received the answer: the next attempt quotes it, or gives it to the same call. */
  readonly left?: 'quote' | 'call' | undefined;
}

/** An answer that the conversation lacks when an attempt starts. */
export interface LeftAnswer {
  readonly item: string;
  readonly left: 'quote' | 'call';
}

interface Items {
  readonly items?: readonly Item[] | undefined;
}

export function openItems({ items = [] }: Items): Item[] {
  return items.filter(({ state }) => state === 'open');
}

export function leftAnswers({ items = [] }: Items): Item[] {
  return items.filter(({ left }) => left !== undefined);
}

/** The stored answer to the same call in an earlier attempt. */
export function earlierAnswer(record: Items, attemptId: string, { tool, input }: ItemRequest): Item | undefined {
  const call = JSON.stringify([tool, input]);
  return leftAnswers(record).find(
    (item) =>
      item.kind === 'permission' && item.attemptId !== attemptId && JSON.stringify([item.tool, item.input]) === call,
  );
}
