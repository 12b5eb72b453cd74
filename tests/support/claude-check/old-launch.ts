/** How a claude was started and read before its releases of autumn 2026, for the pinned one of that time, 2.1.197. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Launch, launchOfRunner } from '../../../src/app/claude-check/launch.ts';
import { userMessage } from '../../../src/claude/control.ts';
import { sessionStartSources } from '../../../src/claude/launch/settings.ts';
import { hostLoginVariable, managedSwitch } from '../../../src/claude/launch/variables.ts';
import { emptyStream } from '../../../src/claude/stream.ts';
import { ok } from '../../../src/core/failure.ts';

type Settings = { env: Record<string, string> };

function edit(path: string, change: (text: string) => string): void {
  writeFileSync(path, change(readFileSync(path, 'utf8')));
}

export const oldLaunch: Launch = {
  ...launchOfRunner,
  // The provider was the host's with every login, also with a stored one.
  environment: (input) => {
    const { [hostLoginVariable]: _none, ...env } = launchOfRunner.environment(input);
    return { ...env, [managedSwitch]: '1' };
  },
  prepare: (world, input) => {
    const prepared = launchOfRunner.prepare(world, input);
    edit(input.paths.workerSettings, (text) => {
      const settings = JSON.parse(text) as Settings;
      settings.env = { ...settings.env, [managedSwitch]: '1', [hostLoginVariable]: '', DISABLE_COMPACT: '' };
      return JSON.stringify(settings);
    });
    // A fork was a resume.
    const own = join(input.paths.config, 'settings.json');
    edit(own, (text) => text.replace(sessionStartSources, 'startup|resume|clear|compact'));
    return prepared;
  },
  // Our settings could switch compaction on again.
  checkProject: (world, project, env) => {
    const checked = launchOfRunner.checkProject(world, project, env);
    return !checked.ok && checked.failure.message.includes('DISABLE_COMPACT') ? ok(undefined) : checked;
  },
  // Totals began with nothing in every process.
  opening: (prompt) => [userMessage(prompt)],
  empty: () => emptyStream(),
};
