/**
 * The entry of a released program, which is a single file: what lies around the program in a package is put into a
 * folder of the user's once (packageRoot), and the launcher there starts the program wherever it lies now.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { packageRoot } from '../../src/system/own-program.ts';

const link = join(packageRoot, 'dist', 'claude-code-agent');

/** Of two that do it at once the first one's stays. */
async function unpack(): Promise<void> {
  const { default: files } = await import('package-files');
  mkdirSync(dirname(packageRoot), { recursive: true });
  const made = mkdtempSync(`${packageRoot}-new-`);
  try {
    for (const [path, { text, mode }] of Object.entries(files)) {
      mkdirSync(dirname(join(made, path)), { recursive: true });
      writeFileSync(join(made, path), text, { mode });
    }
    mkdirSync(join(made, 'dist'));
    symlinkSync(process.execPath, join(made, 'dist', 'claude-code-agent'));
    renameSync(made, packageRoot);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function pointHere(): void {
  if (readlinkSync(link) === process.execPath) return;
  const made = `${link}-${process.pid}`;
  symlinkSync(process.execPath, made);
  renameSync(made, link);
}

// A hook of a session has no home, and needs none of it. What `host add` put on a machine has its package around it.
if (process.env.HOME !== undefined && link !== process.execPath) {
  try {
    if (!existsSync(packageRoot)) await unpack();
    pointHere();
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(link)) console.error(`claude-code-agent: its own files cannot be kept in ${packageRoot}: ${error}`);
  }
}
await import('../../src/main.ts');
