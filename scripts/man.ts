/**
 * Makes the man pages (man/) and docs/reference/ from the definitions, so that they always agree with the help.
 *
 *   sh scripts/bun.sh scripts/man.ts [FOLDER]      with a FOLDER, all of it goes there
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { readCommands, sections } from './man/commands.ts';
import { renderPage } from './man/roff.ts';
import { referencePages } from './reference.ts';

const root = resolve(import.meta.dir, '..');
const target = process.argv[2] === undefined ? undefined : resolve(process.argv[2]);

function write(folder: string, pages: Readonly<Record<string, string>>): void {
  const path = target ?? join(root, folder);
  mkdirSync(path, { recursive: true });
  for (const [name, text] of Object.entries(pages)) writeFileSync(join(path, name), text);
}

const { summary, commands } = await readCommands();
const [name] = Object.keys(manifest.bin) as [string];
write('man', {
  [`${name}.1`]: renderPage({
    name,
    version: manifest.version,
    summary: manifest.description,
    synopsis: [name, `${name} COMMAND [OPTIONS]`, 'cca COMMAND [OPTIONS]'],
    description: `${summary} Without a command, on a terminal, it shows all groups.`,
    commands,
    sections,
  }),
  'cca.1': `.so man1/${name}.1\n`,
});
write('docs/reference', referencePages(commands, sections));
