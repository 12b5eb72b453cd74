#!/bin/sh
# Makes two toy git repositories in DIR: api (a small service) and web (what people see of it). Refuses to touch
# repositories that are already there.
set -eu
[ $# -eq 1 ] || { echo "usage: setup.sh DIR" >&2; exit 2; }
command -v git >/dev/null || { echo "setup.sh: git is needed for the repositories it makes; install it" >&2; exit 2; }
for project in api web; do
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

mkdir -p api/src api/test api/.claude-code-agent
cat >api/package.json <<'EOF'
{
  "name": "api",
  "version": "1.0.0",
  "private": true,
  "type": "module",
  "scripts": { "test": "node --test" }
}
EOF
# How sessions that work here are checked; api needs no set-up.
cat >api/.claude-code-agent/project.yaml <<'EOF'
accept: node --test
acceptTimeout: 2m
EOF
cat >api/src/login.js <<'EOF'
const passwords = { ada: 'engine', grace: 'compiler' };

export function login(name, password) {
  return Object.hasOwn(passwords, name) && passwords[name] === password ? { status: 200 } : { status: 401 };
}
EOF
cat >api/src/search.js <<'EOF'
const titles = ['Notes on the engine', 'The first compiler', 'A history of looms'];

export function search(words) {
  return { status: 200, found: titles.filter((title) => title.toLowerCase().includes(words.toLowerCase())) };
}
EOF
cat >api/test/login.test.js <<'EOF'
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { login } from '../src/login.js';

test('the right password opens, another one does not', () => {
  assert.deepEqual(login('ada', 'engine'), { status: 200 });
  assert.deepEqual(login('ada', 'loom'), { status: 401 });
});
EOF
cat >api/test/search.test.js <<'EOF'
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { search } from '../src/search.js';

test('finds by words, whatever their case', () => {
  assert.deepEqual(search('ENGINE'), { status: 200, found: ['Notes on the engine'] });
});
EOF
commit api 'Login and search'

mkdir -p web/src web/test
cat >web/package.json <<'EOF'
{
  "name": "web",
  "version": "1.0.0",
  "private": true,
  "type": "module",
  "scripts": { "test": "node --test" }
}
EOF
cat >web/src/messages.js <<'EOF'
/** What people read when the service answers with this. */
export function messageFor(answer) {
  if (answer.status === 200) return '';
  if (answer.status === 401) return 'Name and password do not fit.';
  return 'Something went wrong. Try again later.';
}
EOF
cat >web/test/messages.test.js <<'EOF'
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageFor } from '../src/messages.js';

test('a wrong password has a message of its own', () => {
  assert.match(messageFor({ status: 401 }), /password/);
});
EOF
commit web 'Messages'
