/** Promises: reports of an attempt are sent until the runner has them, output first and the end last. */
import { beforeEach, expect, test } from 'bun:test';
import { appendFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ok } from '../../../src/core/failure.ts';
import { Outbox, Slot } from '../../../src/fleet/agent/slot.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import type { FleetEngine } from '../../../src/fleet/redis.ts';
import { type AttemptEnd, type Blob, unpacked } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { slotOrder } from '../../support/fleet/slot-order.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const temp = withTempFolder();
const world = createRealWorld();
const end: AttemptEnd = {
  ...{ say: 'ended', status: { kind: 'exited', code: 0 }, leftover: false, limitsHit: [], stderrTail: '' },
  fenced: false,
};
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

let said: string[];
let isDown: boolean;
let slot: Slot;
let outbox: Outbox;

beforeEach(() => {
  [said, isDown] = [[], false];
  const engine = {
    send: async (_: string, messages: readonly Uint8Array[]) => {
      if (isDown) return fail('timeout', 'Redis does not answer.', '');
      for (const bytes of messages) {
        const message = unpacked(bytes);
        if (message?.kind !== 'attempt') continue;
        const { news } = message;
        said.push(news.say === 'printed' ? `${news.offset} ${Buffer.from(news.data)}` : news.say);
      }
      return ok(['1']);
    },
    putBlob: async (id: string) => {
      said.push(`blob ${id === blob.id}`);
      return ok(blob);
    },
  } as unknown as FleetEngine;
  const fleet = fleetPaths(temp.path);
  slot = Slot.of(world, fleet, { token: 'one:x', ...slotOrder }) as Slot;
  slot.keep();
  mkdirSync(slot.paths.folder, { recursive: true });
  slot.note({ offset: 0 });
  outbox = new Outbox(world, engine, slot, 'one', () => {});
});
let blob: Blob;
const print = (text: string) => appendFileSync(slot.paths.transcript, text);

test('the end is sent after all other reports, and a checkpoint after the output before it', async () => {
  print('abc');
  const kept = outbox.keepBlob(Buffer.from('files'));
  if (!kept.ok) throw new Error(kept.failure.message);
  blob = kept.value;
  slot.note({ checkpoints: [{ say: 'checkpoint', n: 1, prints: 3, files: blob }], end });
  await outbox.send();
  expect(said).toEqual(['0 abc']);
  outbox.have(3, 0);
  await settled();
  expect(said).toEqual(['0 abc', 'blob true', 'checkpoint']);
  outbox.have(3, 1);
  await settled();
  expect(said.at(-1)).toBe('ended');
  expect(slot.record.checkpoints).toEqual([]);
  expect(readdirSync(slot.folder)).toEqual(['slot.json']);
});

test('a blob is kept until the runner has it, also in the slot’s record', async () => {
  const kept = outbox.keepBlob(Buffer.from('files'));
  if (!kept.ok) throw new Error(kept.failure.message);
  slot.note({ checkpoints: [{ say: 'checkpoint', n: 1, prints: 0, files: kept.value }] });
  const path = join(slot.folder, `blob-${kept.value.id}`);
  outbox.have(0, 0);
  expect(existsSync(path)).toBe(true);
  outbox.have(0, 1);
  expect(existsSync(path)).toBe(false);
});

test('missing reports are sent again from the first missing byte', async () => {
  print('abcdef');
  await outbox.send();
  outbox.have(4, 0);
  outbox.sendAgain();
  await settled();
  expect(said).toEqual(['0 abcdef', '4 ef']);
});

test('nothing counts as sent while the engine does not answer', async () => {
  print('abc');
  isDown = true;
  await outbox.send();
  isDown = false;
  await outbox.send();
  expect(said).toEqual(['0 abc']);
  outbox.close();
});
