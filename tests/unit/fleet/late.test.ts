/** Promises: late results of a lost host are processed once, and their cost is always recorded. */
import { expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ok } from '../../../src/core/failure.ts';
import { lateIntake } from '../../../src/fleet/mirror.ts';
import type { BlobStore } from '../../../src/fleet/redis.ts';
import type { AttemptNews, Blob, ParcelFile } from '../../../src/fleet/wire.ts';
import { groupPaths, lateFolder, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { basePath, eventually } from '../../support/system/rig.ts';
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

/** The contents of the parcels and their end; `null` is a missing parcel. */
async function tell(...parcels: readonly (readonly ParcelFile[] | null)[]) {
  const paths = sessionPaths(groupPaths(temp.path, groupId), sid(1));
  mkdirSync(paths.folder, { recursive: true });
  const blobs = {
    getBlob: async ({ id }: Blob) => {
      const files = parcels[Number(id)];
      return files == null ? fail('gone', 'It is gone.', '') : ok(Buffer.from(JSON.stringify({ files })));
    },
  } as unknown as BlobStore;
  const tries: (() => void)[] = [];
  let end = '';
  const late = lateIntake(
    { world: createRealWorld(), env: { PATH: basePath } },
    blobs,
    {
      ...{ attemptId: 'a', place: { host: 'one', token: 't' }, paths, offset: 0 },
      onEnd: (path) => {
        end = path;
      },
      onForgotten: () => {},
    },
    { have: () => {}, askAgain: () => tries.push(() => {}) },
  );
  late.open();
  const news = parcels.map((_, index): AttemptNews => {
    return { say: 'checkpoint', n: index + 1, prints: 0, files: { id: String(index), pieces: 1, size: 1, digest: '' } };
  });
  for (const one of [...news, ended]) late.hear(one);
  await eventually(() => end !== '' || tries.length > 0);
  const kept = join(lateFolder(paths, 'a'), 'claude-config', 'projects', 'late');
  return { end, tries, kept };
}

test('parts of a late conversation are joined, and missing or invalid parts change nothing else', async () => {
  const part = { ...file(talk, '{"b":2}\n'), offset: 508 };
  const out = file('claude-config/projects/../../x.jsonl', 'out\n');
  const settings = file('claude-config/settings.json', '{}');
  const { end, tries, kept } = await tell([{ ...file(talk, '{"a":1}\n'), offset: 500 }, settings], null, [out], [part]);
  expect(end).toContain('transcript.late-a.jsonl');
  expect(tries).toEqual([]);
  expect(readFileSync(join(kept, 'talk.jsonl'), 'utf8')).toBe('{"a":1}\n{"b":2}\n');
  expect(readdirSync(join(kept, '..', '..'))).toEqual(['projects']);
});
