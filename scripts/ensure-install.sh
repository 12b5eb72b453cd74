#!/bin/sh
# Makes `npm run demo` and `npm test` work in a fresh clone: installs when the packages are missing or older
# than the lock file. Output goes to stderr so that it never mixes with what the command prints.
root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root" || exit 1
marker=node_modules/.package-lock.json
if [ ! -f "$marker" ] || [ package-lock.json -nt "$marker" ]; then
  echo "Installing packages (once) ..." >&2
  # A registry may lack packages for other platforms that the lock file names; an ordinary install passes over them.
  npm ci --no-audit --no-fund --loglevel=error >&2 ||
    npm install --no-save --no-audit --no-fund --loglevel=error >&2 || exit 1
  touch "$marker"
fi
