/**
 * Writes what `import "claude-code-agent"` promises as declarations: types.ts [FOLDER], default dist/types. Of all that
 * the compiler declares only what src/index.ts leads to is kept.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = join(import.meta.dir, '..');
const [folder = join(root, 'dist', 'types')] = process.argv.slice(2);
const target = resolve(folder);
mkdirSync(dirname(target), { recursive: true });
const [all, kept] = [mkdtempSync(`${target}-all-`), mkdtempSync(`${target}-new-`)];
try {
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const ran = Bun.spawnSync([compiler, '--project', join(root, 'tsconfig.types.json'), '--outDir', all], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (ran.exitCode !== 0) process.exit(1);
  const open = [join(all, 'index.d.ts')];
  const seen = new Set(open);
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const text = readFileSync(path, 'utf8');
    const copy = join(kept, relative(all, path));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(path, copy);
    for (const [, name = ''] of text.matchAll(/(?:from |import\()['"](\.{1,2}\/[^'"]+)\.ts['"]/g)) {
      const next = join(dirname(path), `${name}.d.ts`);
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
  rmSync(target, { recursive: true, force: true });
  renameSync(kept, target);
} finally {
  rmSync(all, { recursive: true, force: true });
  rmSync(kept, { recursive: true, force: true });
}
