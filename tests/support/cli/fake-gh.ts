/**
 * A stand-in for gh: pull requests are files in the folder FAKE_GH, one for each folder it is called in and branch.
 * Every call is noted in `calls`; a file `logged-out` or `broken` makes it fail like the real one.
 */
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const folder = process.env.FAKE_GH ?? '';
const args = process.argv.slice(2);
const cwd = process.cwd();
appendFileSync(join(folder, 'calls'), `${JSON.stringify({ cwd, args })}\n`);

function option(name: string): string {
  const joined = args.find((arg) => arg.startsWith(`--${name}=`));
  return joined?.slice(name.length + 3) ?? args[args.indexOf(`--${name}`) + 1] ?? '';
}

function stop(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}

const [family, command, subject = ''] = args;
if (family === 'auth') {
  if (existsSync(join(folder, 'logged-out'))) stop('You are not logged into any GitHub hosts.');
} else if (command === 'list') {
  const path = join(folder, fileOf(cwd, option('head')));
  process.stdout.write(existsSync(path) ? `[${readFileSync(path, 'utf8')}]\n` : '[]\n');
} else if (command === 'create') {
  if (existsSync(join(folder, 'broken')) && readFileSync(join(folder, 'broken'), 'utf8') === basename(cwd)) {
    stop('GraphQL: something is wrong');
  }
  const number = readdirSync(folder).filter((name) => name.endsWith('.json')).length + 1;
  const url = `https://example.org/pull/${number}`;
  const [base, title, body] = [option('base'), option('title'), readFileSync(option('body-file'), 'utf8')];
  const request = { url, title, base, body, draft: args.includes('--draft') };
  writeFileSync(join(folder, fileOf(cwd, option('head'))), JSON.stringify(request));
  process.stderr.write(`Creating pull request for ${option('head')} into ${base}\n`);
  process.stdout.write(`${url}\n`);
} else if (command === 'edit') {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  const name = names.find((one) => JSON.parse(readFileSync(join(folder, one), 'utf8')).url === subject);
  if (name === undefined) stop(`no pull request ${subject}`);
  const request = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const body = readFileSync(option('body-file'), 'utf8');
  writeFileSync(join(folder, name), JSON.stringify({ ...request, body }));
} else {
  stop(`unknown command ${args.join(' ')}`);
}

function fileOf(project: string, head: string): string {
  return `${basename(project)} ${head.replaceAll('/', '+')}.json`;
}
