/** What claude keeps of a conversation, written by a test in its place. */
import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sessionUuid } from '../../../src/core/id.ts';
import type { Night } from './night.ts';

/** Writes into a conversation of the session `api`, as claude does. */
export function note(user: Night, group: string, lines: readonly object[], id = sessionUuid(user.id('api'))): void {
  const folder = join(user.data, 'session-groups', group, 'sessions', user.id('api'), 'claude-config/projects/here');
  const path = join(folder, `${id}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  for (const line of lines) appendFileSync(path, `${JSON.stringify(line)}\n`);
}

const now = () => new Date().toISOString();

export const typed = (text: string) => ({ type: 'user', timestamp: now(), message: { role: 'user', content: text } });

/** A hundred tokens in and a thousand out, at the prices of that model: about 2.5 cents. */
export const answer = (id: string, output = 1_000) => ({
  type: 'assistant',
  timestamp: now(),
  message: { id, model: 'claude-opus-4-8', usage: { input_tokens: 100, output_tokens: output }, content: [] },
});
export const answerUsd = 0.0255;
