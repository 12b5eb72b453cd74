#!/bin/sh
# Makes three repositories beside each other in DIR, as a team has them: a library in TypeScript with a dependency of its
# own, a web app that uses it by `file:`, and a Python service that reads a file of it. Above them lie instructions.
set -eu
mkdir -p "$1/acme" && cd "$1/acme"
printf 'Amounts are whole numbers of the smallest unit.\n' > CLAUDE.md
mkdir -p .claude/rules && printf 'Names of currencies are codes of three letters.\n' > .claude/rules/currencies.md
printf 'root = true\n' > .editorconfig

mkdir -p money/src money/test money/vendor/pad && cd money
printf 'node_modules/\ndist/\n' > .gitignore
printf '{ "name": "pad", "version": "1.0.0", "main": "index.js", "types": "index.d.ts" }\n' > vendor/pad/package.json
printf 'exports.pad = (text, width) => text.padStart(width, "0");\n' > vendor/pad/index.js
printf 'export declare function pad(text: string, width: number): string;\n' > vendor/pad/index.d.ts
cat > package.json <<'END'
{
  "name": "@acme/money",
  "version": "1.0.0",
  "main": "dist/money.js",
  "types": "dist/money.d.ts",
  "scripts": { "build": "tsc", "test": "node --test test/" },
  "dependencies": { "pad": "file:vendor/pad" }
}
END
cat > tsconfig.json <<'END'
{
  "compilerOptions": {
    "outDir": "dist", "rootDir": "src", "declaration": true, "strict": true, "target": "es2022",
    "module": "node16", "moduleResolution": "node16", "types": []
  },
  "include": ["src"]
}
END
printf '{ "EUR": 2 }\n' > currencies.json
cd src && cat > money.ts <<'END'
import { pad } from 'pad';

export function format(amount: number, currency: string): string {
  return `${Math.floor(amount / 100)}.${pad(String(amount % 100), 2)} ${currency}`;
}
END
cd .. && cat > test/money.test.js <<'END'
const { test } = require('node:test');
const { format } = require('..');
test('cents', () => require('node:assert').equal(format(1205, 'EUR'), '12.05 EUR'));
END
npm install --offline --no-audit --no-fund --silent

mkdir -p ../web/test && cd ../web
printf 'node_modules/\n' > .gitignore
cat > package.json <<'END'
{
  "name": "web",
  "version": "1.0.0",
  "scripts": { "test": "node --test test/" },
  "dependencies": { "@acme/money": "file:../money" }
}
END
printf 'const { format } = require("@acme/money");\nexports.price = (amount) => format(amount, "EUR");\n' > price.js
cat > test/price.test.js <<'END'
const { test } = require('node:test');
const { price } = require('../price.js');
test('a price', () => require('node:assert').equal(price(250), '2.50 EUR'));
END
npm install --offline --no-audit --no-fund --silent

mkdir -p ../rates && cd ../rates
printf '.venv/\n__pycache__/\n' > .gitignore
cat > rates.py <<'END'
import json
import pathlib

CURRENCIES = pathlib.Path(__file__).parent.parent / "money" / "currencies.json"


def known():
    return sorted(json.loads(CURRENCIES.read_text()))
END
cat > test_rates.py <<'END'
import unittest

import rates


class Known(unittest.TestCase):
    def test_euro(self):
        self.assertIn("EUR", rates.known())
END

cd ..
for name in money web rates; do
  git -C "$name" init -q -b main
  git -C "$name" config user.name Ada && git -C "$name" config user.email ada@example.org
  git -C "$name" add --all && git -C "$name" commit -q -m "Begin $name"
done
