#!/bin/sh
# Makes the toy git repository DIR/shop, whose prices are shown as bare numbers. Refuses to touch an existing one.
set -eu
[ $# -eq 1 ] || { echo "usage: setup.sh DIR" >&2; exit 2; }
command -v git >/dev/null || { echo "setup.sh: git is needed for the repositories it makes; install it" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
[ ! -e shop ] || { echo "setup.sh: $1/shop exists already" >&2; exit 2; }

# Neither the user's git settings nor a repository around us may change what is made here.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Example GIT_AUTHOR_EMAIL=example@example.invalid
export GIT_COMMITTER_NAME=Example GIT_COMMITTER_EMAIL=example@example.invalid

mkdir -p shop/src shop/test
cat >shop/src/prices.js <<'END'
/** The price as it is shown; `cents` is a whole number. */
export function showPrice(cents) {
  return String(cents / 100);
}
END
cat >shop/test/prices.test.js <<'END'
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showPrice } from '../src/prices.js';

test('a price is shown', () => assert.match(showPrice(1250), /12\.5/));
END
printf '{ "name": "shop", "private": true, "type": "module", "scripts": { "test": "node --test" } }\n' >shop/package.json
printf '# Shop\n\nPrices are kept in cents.\n' >shop/README.md
git -c init.defaultBranch=main init --quiet shop
git -C shop add --all
git -C shop commit --quiet --message 'The shop'
