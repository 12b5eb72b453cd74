/**
 * How the runner starts a claude and reads what it says: the very functions, so that a change of them is tried like a
 * change of claude. Tests hand in how it was done once.
 */

import { openingLines } from '../../claude/control.ts';
import { workerArgs } from '../../claude/launch/argv.ts';
import { prepareConfigDir } from '../../claude/launch/config-dir.ts';
import { workerEnvironment } from '../../claude/launch/environment.ts';
import { checkProjectSettings } from '../../claude/launch/project-settings.ts';
import { configSettings, workerSettings } from '../../claude/launch/settings.ts';
import { emptyStream, foldMessage } from '../../claude/stream.ts';

export interface Launch {
  readonly environment: typeof workerEnvironment;
  readonly args: typeof workerArgs;
  readonly prepare: typeof prepareConfigDir;
  readonly checkProject: typeof checkProjectSettings;
  /** What is written into its FIFO first. */
  readonly opening: (prompt: string) => readonly string[];
  readonly empty: typeof emptyStream;
  readonly fold: typeof foldMessage;
}

export const launchOfRunner: Launch = {
  environment: workerEnvironment,
  args: workerArgs,
  prepare: prepareConfigDir,
  checkProject: checkProjectSettings,
  opening: openingLines,
  empty: emptyStream,
  fold: foldMessage,
};

/** Below the folder of a trial: a folder for each attempt, by whose name what it left is found. */
export const attemptsFolder = 'attempts';

/** Raised when a trial looks for something else, so that everything is tried anew. */
const trialRevision = 1;

/**
 * Changes with what a worker is started with: SHA-256 in hexadecimal of what the functions make of one example for each
 * kind of login.
 */
export function launchDigest(): string {
  const caller = { PATH: '/bin', HOME: '/home/u' };
  const settings = { deny: ['Bash(rm:*)'], base: {} };
  const hook = { event: 'SessionStart', program: { program: '/bin/true', args: [] } } as const;
  const examples = [
    { kind: 'api-key', source: '', variables: { ANTHROPIC_API_KEY: 'k' } },
    { kind: 'oauth-token', source: '', variables: { CLAUDE_CODE_OAUTH_TOKEN: 't' } },
    { kind: 'store', source: '', variables: {}, storeDir: '' },
  ] as const;
  const made = examples.map((login) => {
    const env = workerEnvironment({ caller, attemptId: 'a', configDir: '/c', tmpDir: '/t', login });
    return [env, workerSettings(env, settings)];
  });
  const args = workerArgs({
    conversation: { kind: 'new', claudeSessionId: 's' },
    name: 'n',
    permissionMode: 'acceptEdits',
    settingsFile: '/s',
    systemPromptFile: '/p',
    reservedUsd: 1,
    rehearsal: false,
  });
  const whole = [trialRevision, made, args, configSettings({ hooks: [hook] }), launchOfRunner.opening('p')];
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(whole)).digest('hex');
}
