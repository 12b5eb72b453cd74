/** Promises: what an attempt tells is told until it is known, on the disk, that its runner has it. */
import { expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ok } from '../../../src/core/failure.ts';
import { Outbox } from '../../../src/fleet/agent/outbox.ts';
import type { FleetEngine } from '../../../src/fleet/engine.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const folder = withTempFolder();

const engine = {
  send: async (_: string, messages: readonly unknown[]) => ok(messages.map((_message, index) => String(index))),
  hasBlob: async () => ok(true),
  have: async (_: string, ids: readonly string[]) => ok(ids.map(() => true)),
} as unknown as FleetEngine;

/** What is done to the journal and to blobs, in this order. */
function watched(done: string[]): World {
  const world = createRealWorld();
  const { files } = world;
  return {
    ...world,
    files: {
      ...files,
      remove: (path) => {
        done.push('remove');
        files.remove(path);
      },
      openAppend: (path) => {
        const file = files.openAppend(path);
        const append = (text: string): void => {
          done.push(text.includes('through') ? 'acknowledged' : 'news');
          file.append(text);
        };
        const sync = (): void => {
          done.push('sync');
          file.sync();
        };
        return { ...file, append, sync, close: () => file.close() };
      },
    },
  };
}

test('a checkpoint’s blob is removed once it is on the disk that the runner has it', async () => {
  const done: string[] = [];
  const outbox = new Outbox(watched(done), engine, {
    ...{ folder: folder.path, host: 'one', token: 't', groupId: 'g', attemptId: 'a', offset: () => 0 },
    ...{ transcript: join(folder.path, 'transcript'), onRoom: () => {}, tell: () => {} },
  });
  writeFileSync(outbox.blobPath('b'), 'blob');
  outbox.add({ say: 'checkpoint', prints: 0, files: { id: 'b', pieces: 1, size: 4 } });
  await outbox.sendAgain();
  done.length = 0;
  outbox.acknowledge(1);
  expect(done).toEqual(['acknowledged', 'sync', 'remove']);
  expect([existsSync(outbox.blobPath('b')), outbox.acknowledged]).toEqual([false, 1]);
  // What has no blob waits for no disk.
  outbox.addPrinted(3);
  await outbox.sendAgain();
  done.length = 0;
  outbox.acknowledge(2);
  expect(done).toEqual(['acknowledged']);
  outbox.close();
});
