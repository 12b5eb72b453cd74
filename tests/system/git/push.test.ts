/**
 * Promises: a push reaches a server as the user's own git would from the checkout: over http, with a login from this
 * repository's configuration and a shell variable. A refusal names the reason.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fetchBranch, pushCommit, remoteTip } from '../../../src/git/push.ts';
import { git } from '../../support/git/repository.ts';
import { failure, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
let server: ReturnType<typeof serve>;
let commit: string;
beforeEach(() => {
  rig = new WorkspaceRig('shop');
  commit = rig.repository.commit({ 'a.txt': 'a\n' });
  git(rig.repository.bare(bare()), 'config', 'http.receivepack', 'true');
  server = serve(rig.folder, `Basic ${btoa('ada:sesame')}`);
  rig.run('remote', 'add', 'origin', `http://127.0.0.1:${server.port}/shop.git`);
  const included = join(rig.folder, 'work-config');
  writeFileSync(included, `[credential]\n\thelper = "!f() { echo username=ada; echo password=$SHOP_TOKEN; }; f"\n`);
  const include = `[includeIf "gitdir:${rig.gitDir}"]\n\tpath = ${JSON.stringify(included)}\n`;
  writeFileSync(rig.globalConfig, include, { flag: 'a' });
});
afterEach(async () => {
  await server.stop(true);
  rig.remove();
});

const bare = (): string => join(rig.folder, 'shop.git');

/** Plays a team's web server: clients with the login may read and write the folder. */
function serve(folder: string, login: string) {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (request.headers.get('authorization') !== login) {
        return new Response('', { status: 401, headers: { 'www-authenticate': 'Basic realm="shop"' } });
      }
      const { pathname, search } = new URL(request.url);
      const cgi = Bun.spawn(['git', 'http-backend'], {
        env: {
          PATH: process.env.PATH ?? '',
          GIT_PROJECT_ROOT: folder,
          GIT_HTTP_EXPORT_ALL: '1',
          REMOTE_USER: 'ada',
          REQUEST_METHOD: request.method,
          PATH_INFO: pathname,
          QUERY_STRING: search.slice(1),
          CONTENT_TYPE: request.headers.get('content-type') ?? '',
          HTTP_CONTENT_ENCODING: request.headers.get('content-encoding') ?? '',
        },
        stdin: Buffer.from(await request.arrayBuffer()),
        stdout: 'pipe',
      });
      const answer = Buffer.from(await new Response(cgi.stdout).arrayBuffer());
      const end = answer.indexOf('\r\n\r\n');
      const lines = answer.subarray(0, end).toString('latin1').split('\r\n');
      const headers = lines.map((line): [string, string] => {
        const [name = '', ...rest] = line.split(': ');
        return [name, rest.join(': ')];
      });
      const status = Number(headers.find(([name]) => name === 'Status')?.[1]?.slice(0, 3) ?? 200);
      return new Response(answer.subarray(end + 4), { status, headers });
    },
  });
}

const push = (known = rig.gitOf(rig.world, { SHOP_TOKEN: 'sesame' })) =>
  pushCommit(known, { repository: rig.gitDir, remote: 'origin', branch: 'cca/shop', commit });

test('push uses the login of this folder and variables of the user’s shell', async () => {
  value(await push());
  expect(git(bare(), 'rev-parse', 'cca/shop')).toBe(commit);
  const known = rig.gitOf(rig.world, { SHOP_TOKEN: 'sesame' });
  expect(value(await remoteTip(known, rig.gitDir, 'origin', 'cca/shop'))).toBe(commit);
  value(await fetchBranch(known, rig.gitDir, 'origin', 'cca/shop'));
});

test('a rejected login and a rejecting hook are named in the message', async () => {
  expect(failure(await push(rig.git)).message).toMatch(/Authentication failed for 'http:/);
  writeFileSync(join(bare(), 'hooks', 'pre-receive'), '#!/bin/sh\necho "error: TEAM-1: main is frozen" >&2\nexit 1\n', {
    mode: 0o755,
  });
  expect(failure(await push()).message).toBe('git push refused: TEAM-1: main is frozen.');
});
