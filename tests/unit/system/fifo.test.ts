/**
 * Promises: lines arrive complete and in order at a slow reader, a new FIFO is empty, and a missing or closing reader
 * never ends the writer by an error or SIGPIPE.
 */
import { beforeEach, expect, test } from 'bun:test';
import { closeSync, constants, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFifos } from '../../../src/system/libc.ts';
import type { FifoWriter } from '../../../src/system/world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const fifos = createFifos();
const temp = withTempFolder();
let path: string;

beforeEach(() => {
  path = join(temp.path, 'stdin.fifo');
  fifos.create(path);
});

const openReader = (): number => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);

function openWriter(by = fifos): FifoWriter {
  const writer = by.openWriter(path);
  if (writer === null) throw new Error('the FIFO has no reader');
  return writer;
}

/** The bytes that can be read now; null when there are none. */
function readNow(fd: number, maxBytes: number): Buffer | null {
  const bytes = Buffer.alloc(maxBytes);
  try {
    return bytes.subarray(0, readSync(fd, bytes));
  } catch (error) {
    if ((error as { code: string }).code === 'EAGAIN') return null;
    throw error;
  }
}

test('a FIFO line of 5 MB reaches a slow reader whole, and later lines follow in order', async () => {
  const reader = openReader();
  const writer = openWriter();
  const long = 'é'.repeat(2_500_000);
  writer.writeLine(long);
  writer.writeLine('second');
  writer.writeLine('');
  const expected = `${long}\nsecond\n\n`;
  const chunks: Buffer[] = [];
  for (let got = 0; got < Buffer.byteLength(expected); ) {
    const chunk = readNow(reader, 40_000);
    if (chunk === null) await Bun.sleep(1);
    else chunks.push(chunk);
    got += chunk?.length ?? 0;
  }
  expect(Buffer.concat(chunks).toString() === expected).toBe(true);
  expect(readNow(reader, 10)).toBeNull();
  writer.close();
  expect(readNow(reader, 10)).toHaveLength(0);
  closeSync(reader);
});

test('a recreated FIFO is empty', () => {
  const oldReader = openReader();
  const oldWriter = openWriter();
  oldWriter.writeLine('old');
  fifos.create(path);
  const reader = openReader();
  const writer = openWriter();
  writer.writeLine('new');
  expect(readNow(reader, 100)?.toString()).toBe('new\n');
  expect(readNow(oldReader, 100)?.toString()).toBe('old\n');
  for (const each of [oldWriter, writer]) each.close();
  for (const fd of [oldReader, reader]) closeSync(fd);
});

test('a FIFO without a reader has no writer', () => {
  expect(fifos.openWriter(path)).toBeNull();
  expect(fifos.openWriter(join(temp.path, 'none'))).toBeNull();
  writeFileSync(join(temp.path, 'file'), '');
  expect(fifos.openWriter(join(temp.path, 'file'))).toBeNull();
});
