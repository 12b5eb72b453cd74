/** Promises: the reports of a host about an attempt are processed once and in order, whatever is lost or repeated. */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Intake, PrintedFile } from '../../../src/fleet/mirror.ts';
import type { AttemptNews } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const temp = withTempFolder();
const whole = 'one two three four five';
const printed = (from: number, to: number): AttemptNews => ({
  ...{ say: 'printed', offset: from },
  data: Buffer.from(whole.slice(from, to)),
});
const checkpoint = (n: number, prints: number): AttemptNews => ({ say: 'checkpoint', n, prints });
const settled = async () => {
  for (let turns = 0; turns < 20; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
};

function intakeOf(isOpen = true, isRefused: () => boolean = () => false) {
  const path = join(temp.path, crypto.randomUUID());
  const file = new PrintedFile({ world: createRealWorld(), env: {} }, path, 0);
  const [taken, had]: [string[], [number, number][]] = [[], []];
  let asked = 0;
  const intake = new Intake(
    {
      printed: file,
      takeIn: async (news) => {
        if (isRefused()) return false;
        taken.push(news.say === 'checkpoint' ? `checkpoint ${news.n}` : news.say);
        return true;
      },
      have: (bytes, last) => {
        // Records what the runner acknowledged.
        expect(readFileSync(path, 'utf8')).toBe(whole.slice(0, bytes));
        had.push([bytes, last]);
      },
      askAgain: () => {
        asked += 1;
      },
    },
    isOpen,
  );
  return { intake, taken, had, asked: () => asked, text: () => readFileSync(path, 'utf8') };
}

test('a report that is repeated in whole or in part is processed once', async () => {
  const { intake, taken, had, asked, text } = intakeOf();
  for (const news of [printed(0, 7), printed(0, 7), printed(4, 13), checkpoint(1, 13), checkpoint(1, 13)]) {
    intake.hear(news);
    await settled();
  }
  expect(text()).toBe('one two three');
  expect(taken).toEqual(['checkpoint 1']);
  expect(had.at(-1)).toEqual([13, 1]);
  expect(asked()).toBe(0);
});

test('a report after a gap is not processed, and the host is asked once to repeat', async () => {
  const { intake, taken, had, asked, text } = intakeOf();
  intake.hear(printed(0, 3));
  intake.hear(printed(7, 13));
  intake.hear(checkpoint(1, 13));
  await settled();
  expect([text(), taken, had.at(-1), asked()]).toEqual(['one', [], [3, 0], 1]);
  for (const news of [printed(3, 13), checkpoint(1, 13)]) intake.hear(news);
  await settled();
  expect([text(), taken, had.at(-1), asked()]).toEqual(['one two three', ['checkpoint 1'], [13, 1], 1]);
});

test('a report that cannot be processed now is requested again', async () => {
  let isRefused = true;
  const { intake, taken, had, asked } = intakeOf(true, () => isRefused);
  intake.hear(printed(0, 3));
  intake.hear(checkpoint(1, 3));
  await settled();
  expect([had, asked()]).toEqual([[[3, 0]], 1]);
  isRefused = false;
  intake.hear(checkpoint(1, 3));
  await settled();
  expect([taken, had.at(-1)]).toEqual([['checkpoint 1'], [3, 1]]);
});

test('reports to an earlier runner are ignored, and after closing nothing is processed', async () => {
  const { intake, taken } = intakeOf(false);
  intake.hear(checkpoint(1, 0));
  await settled();
  expect(taken).toEqual([]);
  intake.open();
  intake.hear(checkpoint(4, 0));
  await settled();
  intake.close();
  intake.hear(checkpoint(5, 0));
  await settled();
  expect(taken).toEqual(['checkpoint 4']);
});
