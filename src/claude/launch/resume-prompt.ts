/**
 * The prompt of an attempt. A later attempt must say what happened in between: after an interrupt the conversation says
 * that the user refused the tool and wants the model to stop; after a kill it says nothing.
 */
import type { AttemptKind } from '../../core/event.ts';
import { asData } from '../../core/text.ts';
import { isSlashCommand } from '../control.ts';
import { fenced } from './instructions.ts';

export interface ResumePromptInput {
  readonly task: string;
  readonly isTaskChanged?: boolean;
  readonly kind: AttemptKind;
  /** The earlier conversation continues (`--resume`); otherwise the model knows nothing of it. */
  readonly continues: boolean;
  readonly failure?: string;
  /** Its result was not accepted: a sentence, and the end of the acceptance command's output. */
  readonly rejection?: { readonly message: string; readonly output: string };
  readonly contextLost?: boolean;
  readonly spokenWith?: boolean;
  readonly isCutOff?: boolean;
  /** The host of the last attempt was lost, and with it everything after the last checkpoint. */
  readonly isRolledBack?: boolean;
  /** Its last messages are dropped from the conversation. */
  readonly isRewound?: boolean;
  /** Its worktree was missing and was created again from this branch. */
  readonly remadeFrom?: string;
  /** Quoted answers to its questions. */
  readonly answers?: readonly string[];
  /** Its questions wait for a user. */
  readonly asks?: boolean;
  /** Without slash commands, which are messages of their own. */
  readonly messages?: readonly string[];
}

/** For a conversation that ends with a prompt the model has never seen; repeating it would be paid for in each turn. */
export function repeatPrompt({
  messages = [],
  remadeFrom,
  answers = [],
}: Pick<ResumePromptInput, 'messages' | 'remadeFrom' | 'answers'>): string {
  return [unserved, ...remadeWords(remadeFrom), ...answers, ...messages.flatMap((text) => [added, text])].join('\n\n');
}

/**
 * The task for a first attempt; for later ones with what happened before it. claude expands a slash command only at the
 * start of a message; text after it becomes part of its arguments.
 */
export function resumePrompt(input: ResumePromptInput): string {
  const words = promptWords(input);
  return input.continues || isSlashCommand(input.task) ? words : `${opening}\n\n${words}`;
}

/**
 * Begins every conversation. claude puts three digits made from the first message (its 5th, 8th and 21st character)
 * before its system prompt, and so before everything that sessions could share in the prompt cache: with the same first
 * words they are the same for every task.
 */
const opening = 'The task of this session:';

function promptWords(input: ResumePromptInput): string {
  const { task, kind, continues, failure, rejection, messages = [], remadeFrom, isTaskChanged = false } = input;
  const { answers = [], asks = false } = input;
  const said = [...answers, ...messages.flatMap((text) => [added, text])];
  const alone = asks ? '' : ` ${noAnswers}`;
  if (kind === 'start') return [task, ...said].join('\n\n');
  const paused = continues ? `${pauseReason} ${pauseIsNoRefusal}` : pauseReason;
  const why =
    rejection !== undefined ? `${rejected(rejection)}${alone}` : kind === 'retry' ? retryReason(failure) : paused;
  // Announced by the opening, the task comes first in a new conversation; a known one ends with a reminder of it.
  if (!continues) {
    const other = isTaskChanged ? [otherTask] : [];
    return [task, why, `${fresh}${alone}`, ...other, ...remadeWords(remadeFrom), ...said].join('\n\n');
  }
  const lostNote = [
    ...(input.spokenWith ? [spoken] : []),
    ...(input.contextLost ? [lost] : []),
    ...(input.isCutOff ? [cutOff] : []),
    ...(input.isRolledBack ? [rolledBack] : []),
    ...(input.isRewound ? [rewound] : []),
  ];
  const look = rejection === undefined ? [`${check}${alone}`] : [];
  const heading = isTaskChanged ? changed : again;
  return [why, ...lostNote, ...look, ...remadeWords(remadeFrom), heading, task, ...said].join('\n\n');
}

const added = 'The user adds:';

const noAnswers = 'No one can answer questions.';

const unserved =
  'The API did not answer, so the session runner asks again. What was said last, before the error, still holds: do ' +
  'that.';

const pauseReason = 'The session runner paused this session and has now resumed it.';

const pauseIsNoRefusal =
  'No one rejected anything: if the conversation says that a tool use was refused, or that you should stop and wait ' +
  'for the user, that was only the pause.';

function retryReason(failure: string | undefined): string {
  const reason = failure === undefined || failure === '' ? '' : ` The reason: ${failure}`;
  return `The previous attempt at this task failed, and the session runner now tries again.${reason}`;
}

/** The command's output may quote anything, so it is in a fence that it cannot close. */
function rejected({ message, output }: { readonly message: string; readonly output: string }): string {
  const intro = `You said that the task is done, but it was not accepted. ${message}`;
  const todo = 'Find out why, correct the work, and make sure that it is accepted.';
  return output.trim() === '' ? `${intro}\n\n${todo}` : `${intro}\n\n${fenced(asData(output))}\n\n${todo}`;
}

const check =
  'The command or edit that was under way may have taken effect, in part or not at all. Look at the files first, ' +
  'repeat it only if it is still needed, then go on where you were until the task is done.';

const lost =
  'The conversation was compacted before, and your own state was not given back to you then. Read it now: your ' +
  'progress file docs/plans/.cpm-progress-<your session id>.md and other notes of yours in the project, if there are ' +
  'any.';

const cutOff =
  'The end of the conversation was not written down: you have said and done more than it shows. What was done is to ' +
  'be seen in the files alone.';

const rolledBack =
  'The host that ran this session was lost. The conversation and the files are those of the last checkpoint: you may ' +
  'have said and done more than they show. Changes to files after it are lost; what took effect elsewhere, such as a ' +
  'push, may have happened.';

const rewound =
  'The user has taken the conversation back: the last messages are left out of it. What you did in them is to be ' +
  'seen in the files alone.';

function remadeWords(branch: string | undefined): string[] {
  if (branch === undefined) return [];
  return [
    'In the meantime your working folder, a git worktree, was gone. The session runner has made it again from its ' +
      `branch ${branch}. What was committed there is in it. Changes that were in no commit are lost, whatever the ` +
      'conversation says about them. Look at the files now, and do again what is missing before you go on.',
  ];
}

const spoken =
  'In between the user has taken part in this conversation. What was said there holds, also where the task says ' +
  'otherwise, and what was done there need not be done again. No one listens any more now.';

const again = 'The task again:';

const changed =
  'The user has changed the task. Whatever was said of it before, from now on it is this; keep of your work what ' +
  'still fits, and undo what does not:';

const otherTask = 'The task was another one before: what is in the files already may have been made for that.';

const fresh =
  'You do not have the earlier conversation, but its changes may be in the files already. Look at what is there, ' +
  'keep what is good, and finish this task.';
