/** Bad references, dependencies, projects and prompts: what `session add` and everything that names a session meets. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Ground, sessionId } from './ground.ts';
import { type Mistake, mistake, mistakes } from './mistake.ts';

const listGroups = 'See: claude-code-agent group list';
const mebibyte = 1024 * 1024;

export function groupReferences(ground: Ground): readonly Mistake[] {
  const twins = ground.groups.filter((id) => id.endsWith('-twin'));
  return [
    ...mistakes((group) => ['group', 'show', group, '--json'], 2, [
      ['nope', 'no group "nope"', listGroups],
      ['', 'no group ""', listGroups],
      [' ', 'no group " "', listGroups],
      ['.', 'no group "."', listGroups],
      ['..', 'no group ".."', listGroups],
      ['../session-groups', 'no group "../session-groups"', listGroups],
      ['auth/api', 'no group "auth/api"', listGroups],
      ['Auth', 'no group "Auth"', listGroups],
      ['aut', 'no group "aut"', listGroups],
      ['*', 'no group "*"', listGroups],
      [ground.data, 'no group "', listGroups],
      [`${ground.groups[0]}x`, `no group "${ground.groups[0]}x"`, listGroups],
      [`${ground.groups[0]}/`, `no group "${ground.groups[0]}/"`, listGroups],
      ['x'.repeat(5_000), 'no group "xxx', listGroups],
      ['a\u001b[31mb', 'no group "a', listGroups],
      ['a\nb', 'no group "a', listGroups],
      ['toString', 'no group "toString"', listGroups],
      ['__proto__', 'no group "__proto__"', listGroups],
      ['2026', '"2026" fits 10 groups: ', 'Give more of the id.'],
      ['20260102-0304', ground.groups[3] as string, 'Give more of the id.'],
      ['20260102-03040', twins[1] as string, 'Give more of the id.'],
    ]),
    ...['run', 'resume', 'watch', 'graph', 'archive'].map((name) =>
      mistake(['group', name, 'nope'], 2, 'no group "nope"', listGroups),
    ),
    mistake(['group', 'delete', 'nope', '--force'], 2, 'no group "nope"', listGroups),
    mistake(['group', 'delete', '..', '--force'], 2, 'no group ".."', listGroups),
    mistake(['group', 'delete', '', '--force'], 2, 'no group ""', listGroups),
    mistake(['group', 'delete', '2026', '--force'], 2, 'fits 10 groups', 'Give more of the id.'),
    mistake(['session', 'list', 'nope'], 2, 'no group "nope"', listGroups),
    mistake(['session', 'add', 'nope', '--project', '.', '--prompt', 'x'], 2, 'no group "nope"', listGroups),
  ];
}

export function sessionReferences(ground: Ground): readonly Mistake[] {
  const [auth = ''] = ground.groups;
  const list = `See: claude-code-agent session list ${auth}`;
  const needGroup = 'with their group: <group>/<number-or-name>';
  return [
    ...mistakes((session) => ['session', 'show', session, '--json'], 2, [
      ['auth/9', 'no session "9" in the group', list],
      ['auth/nope', 'no session "nope" in the group', list],
      ['auth/', 'no session "" in the group', list],
      ['auth/ap', 'no session "ap" in the group', list],
      ['auth/..', 'no session ".." in the group', list],
      ['auth/a/b', 'no session "a/b" in the group', list],
      ['auth/../done/lib', 'no session "../done/lib" in the group', list],
      ['auth/lib', 'no session "lib" in the group', list],
      ['auth/-1', 'no session "-1" in the group', list],
      ['auth/0', 'no session "0" in the group', list],
      ['auth/1.0', 'no session "1.0" in the group', list],
      ['auth/aaaa', '"aaaa" fits 3 sessions', 'Give more of the id.'],
      [`auth/${'9'.repeat(2_000)}`, 'no session "999', list],
      [`auth/${sessionId(7)}`, `no session "${sessionId(7)}"`, list],
      ['/api', 'no group ""', listGroups],
      ['/', 'no group ""', listGroups],
      ['nope/api', 'no group "nope"', listGroups],
      ['1', 'no session with the id "1"', needGroup],
      ['api', 'no session with the id "api"', needGroup],
      ['', 'no session with the id ""', needGroup],
      ['..', 'no session with the id ".."', needGroup],
      ['constructor', 'no session with the id "constructor"', needGroup],
      ['\u001b[2J', 'no session with the id "', needGroup],
    ]),
    mistake(['session', 'show', 'aaaa'], 2, /"aaaa" fits \d+ sessions: /, 'Give more of the id.'),
    mistake(['session', 'logs', 'auth/nope'], 2, 'no session "nope"', list),
    mistake(['session', 'remove', 'auth/nope'], 2, 'no session "nope"', list),
    mistake(['session', 'remove', '001', '--force'], 2, 'no session with the id "001"', needGroup),
  ];
}

export function dependencies(ground: Ground): readonly Mistake[] {
  const [auth = ''] = ground.groups;
  const add = ['session', 'add', 'auth', '--project', '.', '--prompt', 'x'];
  const list = `See: claude-code-agent session list ${auth}`;
  return [
    ...mistakes((session) => [...add, '--depends-on', session], 2, [
      ['nope', 'no session "nope"', list],
      ['', 'no session ""', list],
      ['9', 'no session "9"', list],
      ['done/lib', /"done\/lib" names the group \S+-done, .* own group/, list],
      ['done/nope', /"done\/nope" names the group \S+-done, .* own group/, list],
      ['auth/nope', 'no session "nope"', list],
      ['auth/', 'no session ""', list],
      ['auth/auth/api', 'no session "auth/api"', list],
      ['nope/api', 'no group "nope"', listGroups],
      ['/api', 'no group ""', listGroups],
      ['2026/api', 'fits 10 groups', 'Give more of the id.'],
      ['api,web', 'no session "api,web"', list],
      ['aaaa', 'fits 3 sessions', 'Give more of the id.'],
      ['--name', 'no session "--name"', list],
      ['a\u0007b', 'no session "a', list],
    ]),
    mistake([...add, '--depends-on', 'api', '--depends-on', 'nope'], 2, 'no session "nope"', list),
    mistake([...add, '--name', 'me', '--depends-on', 'me'], 2, 'me -> me', 'Leave out --depends-on me'),
    mistake([...add, '--name', 'me', '--depends-on', 'auth/me'], 2, 'me -> me', 'Leave out --depends-on me'),
    mistake([...add, '--name', 'me', '--depends-on', 'api', '--depends-on', 'me'], 2, 'me -> me', 'Leave out'),
  ];
}

export function projects(ground: Ground): readonly Mistake[] {
  const { folder } = ground;
  const give = 'Give the path of an existing folder to --project.';
  writeFileSync(join(folder, 'file'), 'x');
  symlinkSync('round', join(folder, 'round'));
  symlinkSync('nowhere', join(folder, 'dangling'));
  symlinkSync('file', join(folder, 'link-to-file'));
  return [
    ...mistakes((project) => ['session', 'add', 'auth', '--project', project, '--prompt', 'x'], 2, [
      ['nope', `project ${folder}/nope does not exist`, give],
      ['./nope/', `project ${folder}/nope does not exist`, give],
      ['', 'path of the project is empty', give],
      ['file', `project ${folder}/file is not a folder`, give],
      ['file/', `project ${folder}/file is not a folder`, give],
      ['file/inner', `project ${folder}/file/inner does not exist`, give],
      ['link-to-file', 'is not a folder', give],
      ['round', `project ${folder}/round is a symbolic link that leads back`, give],
      ['dangling', `project ${folder}/dangling does not exist`, give],
      ['/dev/null', 'project /dev/null is not a folder', give],
      ['~', `project ${folder}/~ does not exist`, give],
      ['no\nwhere', /project "\/.*no\\nwhere" does not exist/, give],
      ['nope\n', /project "\/.*nope\\n" does not exist/, give],
      ['nope ', /project "\/.*nope " does not exist/, give],
      ['no\u200bpe', /project "\/.*no\\u200bpe" does not exist/, give],
      [`${'x/'.repeat(3_000)}\n`, /…[x/]+\\n" is longer than a path can be/, give],
      ['no\u001b[31mwhere', /no\\u001b\[31mwhere" does not exist/, give],
      ['x'.repeat(300), 'xxx is longer than a path can be', give],
      ['x/'.repeat(3_000), /…[x/]+ is longer than a path can be/, give],
      ['--prompt', `project ${folder}/--prompt does not exist`, give],
    ]),
  ];
}

export function prompts(ground: Ground): readonly Mistake[] {
  const { folder } = ground;
  const add = ['session', 'add', 'auth', '--project', '.'];
  const file = (name: string, contents: string | Uint8Array): void => writeFileSync(join(folder, name), contents);
  file('blank.md', ' \n\t\n');
  file('nothing.md', '');
  file('binary.md', 'a\0b');
  file('latin-1.md', Buffer.from([0x66, 0xfc, 0x72]));
  file('huge.md', 'x'.repeat(mebibyte + 1));
  const say = 'Say what the session is to do.';
  const plain = 'Give plain text';
  const shorter = 'Put the material into the project';
  const giveFile = 'Give the path of a text file';
  const pairs = 'Give variables as --var name=value.';
  return [
    mistake(add, 2, 'has no task', '--prompt TEXT, --prompt-file FILE or --prompt -'),
    ...mistakes((prompt) => [...add, '--prompt', prompt], 2, [
      ['', '--prompt is blank', say],
      [' \n\t', '--prompt is blank', say],
      ['\u00a0\u3000', '--prompt is blank', say],
      ['\ufeff', '--prompt is blank', say],
    ]),
    ...mistakes((name) => [...add, '--prompt-file', name], 2, [
      ['nope.md', `${folder}/nope.md does not exist`, giveFile],
      ['.', `${folder} is a folder`, giveFile],
      ['', 'prompt file is empty', giveFile],
      ['round', `${folder}/round is a symbolic link that leads back`, giveFile],
      ['file/inner', 'does not exist', giveFile],
      ['/dev/null', 'prompt file /dev/null is not a file', giveFile],
      ['blank.md', 'blank.md is blank', say],
      ['nothing.md', 'nothing.md is blank', say],
      ['binary.md', 'binary.md contains a NUL', plain],
      ['latin-1.md', 'latin-1.md is not UTF-8', plain],
      ['huge.md', 'huge.md is longer than 1 MiB', shorter],
      ['x'.repeat(300), 'xxx is longer than a path can be', giveFile],
    ]),
    mistake([...add, '--prompt', 'x', '--prompt-file', 'blank.md'], 2, 'Both --prompt and --prompt-file', 'Give one'),
    ...mistakes((pair) => [...add, '--prompt', 'x', '--var', pair], 2, [
      ['x', 'The value "x" of --var has no "="', pairs],
      ['=x', 'The value "=x" of --var has no name of a variable before the "="', pairs],
      ['1=x', 'The value "1=x" of --var has no name of a variable before the "=": a name has 1 to 64 letters', pairs],
      ['__proto__=x', 'and is not "__proto__"', pairs],
      ['constructor=x', 'Nothing uses a variable "constructor"', pairs],
    ]),
    mistake(['group', 'create', 'x', '--var', '__proto__=x'], 2, 'and is not "__proto__"', pairs),
    mistake([...add, '--prompt', '-'], 2, 'standard input is blank', say),
    mistake([...add, '--prompt', '-'], 2, 'standard input is blank', say, { stdin: ' \n' }),
    mistake([...add, '--prompt', '-'], 2, 'standard input is blank', say, { stdin: null }),
    mistake([...add, '--prompt', '-'], 2, 'standard input contains a NUL', plain, { stdin: 'a\0b' }),
    mistake([...add, '--prompt', '-'], 2, 'standard input is longer', shorter, { stdin: 'x'.repeat(mebibyte + 1) }),
    mistake([...add, '--prompt', '-'], 2, 'standard input is longer', shorter, { stdin: 'x'.repeat(5 * mebibyte) }),
  ];
}
