/** Files that are missing, of the wrong kind or not ours, scripts that are none, and bad environments. */
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { groupsFolder } from '../../../../src/store/paths.ts';
import type { Ground } from './ground.ts';
import { type Mistake, mistake } from './mistake.ts';

const restore = 'Restore the file from a backup';
const permissions = 'Check the permissions';

/** Files and folders in the data root that should not be there, or should be something else. */
export function strangeFiles(ground: Ground): readonly Mistake[] {
  const { missing, folder, locked, linked } = prepareStrangeFiles(ground);
  const list = 'See: claude-code-agent group list';
  const add = (group: string): string[] => ['session', 'add', group, '--project', '.', '--prompt', 'x'];
  return [
    mistake(['group', 'show', missing], 1, 'events.jsonl is missing', restore),
    mistake(['session', 'show', `${missing}/001`], 1, 'events.jsonl is missing', restore),
    mistake(['group', 'show', folder], 1, 'has no complete first line', restore),
    mistake(add(locked), 1, 'runner.lock: EISDIR', 'permissions'),
    mistake(['group', 'run', locked], 1, 'runner.lock: EISDIR', 'permissions'),
    mistake(['group', 'show', linked], 1, 'belongs to the group', restore),
    mistake(['group', 'show', '20260909-090909-file'], 2, 'no group "20260909-090909-file"', list),
    mistake(['group', 'run', '20260909-090909-dangling'], 2, 'no group "20260909-090909-dangling"', list),
    mistake(['group', 'show', 'notes'], 2, 'no group "notes"', list),
    mistake(['group', 'delete', 'notes', '--force'], 2, 'no group "notes"', list),
    mistake(['group', 'delete', 'foreign', '--force'], 2, 'no group "foreign"', list),
    mistake(['group', 'show', '.new-1'], 2, 'no group ".new-1"', list),
  ];
}

function prepareStrangeFiles(ground: Ground): Record<'missing' | 'folder' | 'locked' | 'linked', string> {
  const all = groupsFolder(ground.data);
  const make = (slug: string): string => ground.make(slug, [{ name: 'one' }]);
  const [missing, folder, locked] = [make('missing'), make('folder'), make('locked')];
  for (const group of [missing, folder]) rmSync(ground.paths(group).events);
  mkdirSync(ground.paths(folder).events);
  rmSync(ground.paths(locked).lock, { force: true });
  mkdirSync(ground.paths(locked).lock);
  const linked = '20260909-090909-linked';
  symlinkSync(ground.groups[0] as string, join(all, linked));
  symlinkSync('nowhere', join(all, '20260909-090909-dangling'));
  writeFileSync(join(all, '20260909-090909-file'), 'x');
  writeFileSync(join(all, 'notes'), 'x');
  writeFileSync(join(all, '.DS_Store'), 'x');
  mkdirSync(join(all, 'foreign', 'deep'), { recursive: true });
  mkdirSync(join(all, '.new-1'));
  return { missing, folder, locked, linked };
}

/** A meta.json is only a view: whatever happened to it, the group is shown and listed. Changes the group's files. */
export function strangeSnapshots(ground: Ground): readonly Mistake[] {
  const damage: Readonly<Record<string, (path: string) => void>> = {
    torn: (path) => truncateSync(path, 100),
    nulled: (path) => writeFileSync(path, 'null'),
    replaced: (path) => renameSync(ground.paths(ground.groups[0] as string).meta, path),
    'a-folder': (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  };
  return Object.entries(damage).flatMap(([slug, change]) => {
    const id = ground.make(slug, [{ name: 'one' }]);
    change(ground.paths(id).meta);
    return [
      mistake(['group', 'show', slug, '--json'], 0, /^$/, /^$/, { shows: `"id": "${id}"` }),
      mistake(['group', 'list'], 0, /^$/, /^$/, { shows: id }),
    ];
  });
}

export function scripts(ground: Ground): readonly Mistake[] {
  const file = (name: string, text: string): void => writeFileSync(join(ground.folder, name), text);
  file('unclosed.yaml', 'version: 1\nsessions: {');
  file('tabs.yaml', 'version: 1\nsessions:\n\t"*": {}');
  file('newer.yaml', 'version: 2\nsessions: {}\n');
  file('unknown-key.yaml', 'version: 1\nsessions:\n  api:\n    steps:\n      - txt: hi\n');
  const lol = (name: string, of: string): string => `${name}: &${name} [${Array(9).fill(`*${of}`).join(',')}]\n`;
  file('laughs.yaml', `a: &a [x]\n${lol('b', 'a')}${lol('c', 'b')}${lol('d', 'c')}${lol('e', 'd')}version: 1\n`);
  const correct = 'Correct the script and run the command again.';
  const rows: readonly (readonly [string, string | RegExp, string | RegExp])[] = [
    ['nope.yaml', 'no rehearsal script', 'Give the path of a YAML file'],
    ['.', 'no rehearsal script', 'Give the path of a YAML file'],
    ['unclosed.yaml', 'unclosed.yaml:2:', correct],
    ['tabs.yaml', 'tabs.yaml:3:', correct],
    ['newer.yaml', 'newer.yaml:1:', correct],
    ['unknown-key.yaml', 'unknown-key.yaml:5:', correct],
    ['laughs.yaml', 'laughs.yaml', correct],
  ];
  return rows.map(([name, culprit, next]) => mistake(['group', 'run', 'auth', '--rehearse', name], 2, culprit, next));
}

/** The data root and the program that the environment names. */
export function environments(ground: Ground): readonly Mistake[] {
  const { folder } = ground;
  writeFileSync(join(folder, 'plain'), 'x');
  const root = (path: string | undefined, more: Partial<Mistake> = {}): Partial<Mistake> => ({
    env: { CLAUDE_CODE_AGENT_HOME: path },
    ...more,
  });
  const list = ['group', 'list', '--json'];
  const setRoot = 'Set CLAUDE_CODE_AGENT_HOME to a folder that you own';
  return [
    ...['relative', '~/data', ' '].map((path) =>
      mistake(list, 2, `CLAUDE_CODE_AGENT_HOME is "${path}"`, 'Set it to a path that begins with "/"', root(path)),
    ),
    ...[list, ['group', 'create', 'x']].map((args) =>
      mistake(args, 2, `${folder}/plain is not a folder`, setRoot, root(join(folder, 'plain'))),
    ),
    mistake(list, 2, `${folder}/plain/deeper`, setRoot, root(join(folder, 'plain', 'deeper'))),
    mistake(['group', 'create', 'x'], 1, 'Cannot write /proc/nowhere/', 'permissions', root('/proc/nowhere')),
    mistake(list, 2, 'HOME is not set', 'Set HOME', { env: { CLAUDE_CODE_AGENT_HOME: '', HOME: undefined } }),
    mistake(['group', 'create', 'x'], 2, 'HOME is not set', 'Set HOME', {
      env: { CLAUDE_CODE_AGENT_HOME: undefined, HOME: '' },
    }),
    mistake(list, 2, 'HOME is "home"', 'Set HOME', { env: { CLAUDE_CODE_AGENT_HOME: undefined, HOME: 'home' } }),
  ];
}

/** What the system refuses to an ordinary user. The data root must belong to that user. */
export function refusals(ground: Ground): readonly Mistake[] {
  const unreadable = ground.make('unreadable', [{ name: 'one' }]);
  const unreadableLog = ground.make('unreadable-log', [{ name: 'one' }]);
  const frozen = ground.make('frozen', [{ name: 'one' }]);
  const auth = ['session', 'add', 'auth', '--project'];
  const add = (group: string): string[] => ['session', 'add', group, '--project', '/', '--prompt', 'x'];
  const { folder } = ground;
  mkdirSync(join(folder, 'closed', 'inner'), { recursive: true });
  chmodSync(join(folder, 'closed'), 0o000);
  writeFileSync(join(folder, 'secret.md'), 'x');
  chmodSync(join(folder, 'secret.md'), 0o000);
  const giveFolder = 'Give the path of an existing folder to --project.';
  chmodSync(ground.paths(unreadable).folder, 0o000);
  chmodSync(ground.paths(unreadableLog).events, 0o000);
  rmSync(ground.paths(frozen).lock, { force: true });
  chmodSync(ground.paths(frozen).folder, 0o500);
  const rows: readonly Mistake[] = [
    mistake([...auth, 'closed/inner', '--prompt', 'x'], 2, `${folder}/closed/inner cannot be read`, giveFolder),
    mistake([...auth, 'closed', '--prompt', 'x'], 2, `${folder}/closed cannot be read`, giveFolder),
    mistake(
      [...auth, '/', '--prompt-file', 'secret.md'],
      2,
      'secret.md cannot be read',
      'Give the path of a text file',
    ),
    mistake(['group', 'run', 'auth', '--rehearse', 'secret.md'], 2, 'secret.md', 'Give the path of a YAML file'),
    mistake(['group', 'show', unreadable], 1, unreadable, permissions),
    mistake(['group', 'run', unreadable], 1, unreadable, 'permissions'),
    mistake(['group', 'delete', unreadable, '--force'], 1, unreadable, 'permissions'),
    mistake(['group', 'show', unreadableLog], 1, 'events.jsonl', permissions),
    mistake(add(unreadableLog), 1, 'events.jsonl', permissions),
    mistake(add(frozen), 1, `Cannot write ${ground.paths(frozen).folder}`, 'permissions'),
    mistake(['group', 'run', frozen], 1, `Cannot write ${ground.paths(frozen).folder}`, 'permissions'),
    mistake(['group', 'archive', frozen], 1, `Cannot write ${ground.paths(frozen).folder}`, 'permissions'),
    mistake(['group', 'create', 'x'], 1, '/nobody-may', 'permissions', {
      env: { CLAUDE_CODE_AGENT_HOME: '/nobody-may' },
    }),
  ];
  return rows.map((row) => ({ ...row, unprivileged: true as const }));
}
