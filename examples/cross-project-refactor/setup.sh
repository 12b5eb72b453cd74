#!/bin/sh
# Makes three toy git repositories in DIR: project-a (a small service with a login), project-b (a shared library)
# and project-c (documentation). Refuses to touch repositories that are already there.
set -eu
[ $# -eq 1 ] || { echo "usage: setup.sh DIR" >&2; exit 2; }
command -v git >/dev/null || { echo "setup.sh: git is needed for the repositories it makes; install it" >&2; exit 2; }
for project in project-a project-b project-c; do
  [ ! -e "$1/$project" ] || { echo "setup.sh: $1/$project exists already" >&2; exit 2; }
done
mkdir -p "$1"
cd "$1"

# Neither the user's git settings nor a repository around us may change what is made here.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Example GIT_AUTHOR_EMAIL=example@example.invalid
export GIT_COMMITTER_NAME=Example GIT_COMMITTER_EMAIL=example@example.invalid

commit() {
  git -c init.defaultBranch=main init --quiet "$1"
  git -C "$1" add --all
  git -C "$1" commit --quiet --message "$2"
}

mkdir -p project-a/src project-a/test
cat >project-a/package.json <<'EOF'
{
  "name": "project-a",
  "version": "2.3.0",
  "private": true,
  "type": "module",
  "scripts": { "start": "node src/server.js", "test": "node --test" }
}
EOF
cat >project-a/README.md <<'EOF'
# project-a

The ordering service. `POST /login` takes a name and a password and answers with a session token.
EOF
cat >project-a/src/login.js <<'EOF'
import { randomUUID } from 'node:crypto';

const users = { ada: 'engine', grace: 'compiler' };
const sessions = new Map();

export function login(name, password) {
  if (users[name] !== password) return null;
  const token = randomUUID();
  sessions.set(token, name);
  return token;
}

export function whoIs(token) {
  return sessions.get(token) ?? null;
}
EOF
cat >project-a/src/server.js <<'EOF'
import { createServer } from 'node:http';
import { login } from './login.js';

createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  if (request.method !== 'POST' || request.url !== '/login') {
    response.writeHead(404).end();
    return;
  }
  const { name, password } = JSON.parse(text);
  const token = login(name, password);
  response.writeHead(token ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify({ token }));
}).listen(8080, '127.0.0.1');
EOF
cat >project-a/test/login.test.js <<'EOF'
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { login, whoIs } from '../src/login.js';

test('a login gives a token that tells who it is', () => {
  assert.equal(whoIs(login('ada', 'engine')), 'ada');
});

test('a wrong password gives nothing', () => {
  assert.equal(login('ada', 'loom'), null);
});
EOF
commit project-a 'Ordering service with login'

mkdir -p project-b/src project-b/test
cat >project-b/package.json <<'EOF'
{
  "name": "project-b",
  "version": "1.0.0",
  "private": true,
  "type": "module",
  "exports": "./src/index.js",
  "scripts": { "test": "node --test" }
}
EOF
cat >project-b/CHANGELOG.md <<'EOF'
# Changes

## 1.0.0

- `isBlank`
EOF
cat >project-b/src/index.js <<'EOF'
/** True for text without a visible character. */
export function isBlank(text) {
  return text.trim() === '';
}
EOF
cat >project-b/test/index.test.js <<'EOF'
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isBlank } from '../src/index.js';

test('isBlank', () => {
  assert.equal(isBlank(' \t\n'), true);
  assert.equal(isBlank(' a '), false);
});
EOF
commit project-b 'Shared library'

mkdir -p project-c/docs
cat >project-c/README.md <<'EOF'
# Handbook

- [Authentication](docs/authentication.md)
EOF
cat >project-c/docs/authentication.md <<'EOF'
# Authentication

project-a compares the password with the one in its source code. There is no page about the shared library yet.
EOF
commit project-c 'Handbook'
