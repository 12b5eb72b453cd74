/** Promises: what a lost host tells late is taken in once, and nothing that it tells keeps its cost unbooked. */
import { expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ok } from '../../../src/core/failure.ts';
import type { BlobStore } from '../../../src/fleet/engine.ts';
import { LateAttempt } from '../../../src/fleet/late.ts';
import type { AttemptNews, Blob, ParcelFile } from '../../../src/fleet/wire.ts';
import { groupPaths, lateConversations, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { basePath, until } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const talk = 'claude-config/projects/{{cca:slug}}/talk.jsonl';
const ended: AttemptNews = {
  ...{ say: 'ended', status: { kind: 'exited', code: 0 }, leftover: false, limitsHit: [], stderrTail: '' },
  fenced: true,
};

const temp = withTempFolder();

const file = (path: string, text: string): ParcelFile => ({
  ...{ path, isText: false, data: Buffer.from(text).toString('base64') },
});

/** What is told by parcels, and its end; `null` = one that is gone. */
async function tell(...parcels: readonly (readonly ParcelFile[] | null)[]) {
  const paths = sessionPaths(groupPaths(temp.path, groupId), sid(1));
  mkdirSync(paths.folder, { recursive: true });
  const blobs = {
    getBlob: async ({ id }: Blob) => {
      const files = parcels[Number(id)];
      return files == null ? fail('gone', 'It is gone.', '') : ok(Buffer.from(JSON.stringify({ files })));
    },
  } as unknown as BlobStore;
  const refused: string[] = [];
  const tries: (() => void)[] = [];
  let end = '';
  const late = new LateAttempt(
    { world: createRealWorld(), env: { PATH: basePath } },
    blobs,
    {
      ...{ attemptId: 'a', place: { host: 'one', token: 't' }, paths, offset: 0 },
      onEnd: (path) => {
        end = path;
      },
      onForgotten: () => {},
      onRefused: (message) => refused.push(message),
    },
    { have: () => {}, askAgain: () => tries.push(() => {}) },
  );
  late.greeted();
  const news = parcels.map((_, index): AttemptNews => {
    return { say: 'checkpoint', n: index + 1, prints: 0, files: { id: String(index), pieces: 1, size: 1 } };
  });
  for (const one of [...news, ended]) late.hear(one);
  await until(() => end !== '' || tries.length > 0);
  const kept = join(lateConversations(paths, 'a'), 'projects');
  return { refused, end, tries, kept };
}

test.each([
  ['that holds a NUL', 'claude-config/projects/a\0b.jsonl', 'a\\u0000b.jsonl", which would lead out'],
  ['that is longer than a name can be', `claude-config/projects/${'x'.repeat(300)}.jsonl`, 'whose name is too long'],
  ['that leads out', 'claude-config/projects/../../x.jsonl', 'which would lead out'],
])('a part of a conversation with a path %s is refused once, and what it cost is booked without it', async (...row) => {
  const [, path, said] = row;
  const { refused, end, tries, kept } = await tell([file(talk, 'one\n'), file(path, 'two\n')]);
  expect(end).toContain('transcript.late-a.jsonl');
  expect(tries).toEqual([]);
  expect(refused).toHaveLength(1);
  expect(refused[0]).toContain(said);
  expect(refused[0]).toStartWith('What the host one tells late of attempt a cannot be taken in whole, so its cost');
  expect(readFileSync(join(kept, '0', 'talk.jsonl'), 'utf8')).toBe('one\n');
  expect(readdirSync(join(kept, '0'))).toEqual(['talk.jsonl']);
});

test('parts that are gone are told of, and the rest is taken in', async () => {
  const { refused, end, kept } = await tell(null, [file(talk, 'one\n')]);
  expect(end).not.toBe('');
  expect(refused).toHaveLength(1);
  expect(refused[0]).toContain('It is gone.');
  expect(readFileSync(join(kept, '0', 'talk.jsonl'), 'utf8')).toBe('one\n');
});
