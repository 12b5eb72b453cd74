/**
 * Everything that ever went through a Redis with a log on disk, as readable with the fleet's key: sealed data is
 * opened, and files inside are decoded. Git packs stay packed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Seal } from '../../src/fleet/seal.ts';
import { createRealWorld } from '../../src/system/real-world.ts';

export function sentThrough(folder: string, sealingKey: string): string {
  const seal = new Seal(sealingKey, createRealWorld().random);
  const logs = readdirSync(join(folder, 'appendonlydir')).filter((name) => name.endsWith('.incr.aof'));
  const commands = logs.flatMap((name) => [...commandsIn(readFileSync(join(folder, 'appendonlydir', name)))]);
  return commands
    .flatMap(([, key = Buffer.alloc(0), ...rest]) =>
      rest.map((value, index) => {
        const places = [key.toString(), `${key}/${rest[index - 1] ?? ''}`];
        const opened = places.map((place) => seal.open(place, value)).find((bytes) => bytes !== null);
        return opened === undefined ? value.toString('latin1') : withFiles(opened.toString());
      }),
    )
    .join('\n');
}

function withFiles(text: string): string {
  const files = [...text.matchAll(/"data":"([^"]*)"/g)].map(([, data = '']) => Buffer.from(data, 'base64').toString());
  return [text, ...files].join('\n');
}

/** In the format of Redis: `*2`, then `$3` and three bytes for each word, each line ended by CRLF. */
function* commandsIn(log: Buffer): Generator<Buffer[]> {
  let at = 0;
  const count = (): number => {
    const end = log.indexOf('\r\n', at);
    const value = Number(log.toString('latin1', at + 1, end));
    at = end + 2;
    return value;
  };
  while (at < log.length) {
    const words: Buffer[] = [];
    for (let left = count(); left > 0; left -= 1) {
      const length = count();
      words.push(log.subarray(at, at + length));
      at += length + 2;
    }
    yield words;
  }
}
