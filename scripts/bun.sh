#!/bin/sh
# Runs the Bun this package depends on, for development scripts.
root=$(cd "$(dirname "$0")/.." && pwd -P)
. "$root/bin/find-bun.sh"
find_bun "$root" || { echo "no Bun found; run 'npm ci'" >&2; exit 127; }
exec "$bun" "$@"
