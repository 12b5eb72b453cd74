#!/bin/sh
# check-skips.sh LOG [LIST]: a skipped test proves nothing, so .ci/skips lists the tests that may be skipped. Prints one
# line for each other skipped test in the output of `bun test`, and exits with 1 when there is one.
# A line of the list is `PATTERN — reason`. The pattern is a shell pattern for the whole name of a test.
root=$(cd "$(dirname "$0")/.." && pwd -P)
list=${2:-$root/.ci/skips}
[ -r "$1" ] && [ -r "$list" ] || { echo "usage: check-skips.sh LOG [LIST]" >&2; exit 2; }

is_listed() {
  while IFS= read -r line; do
    pattern=${line%% — *}
    [ "$pattern" != "$line" ] || continue
    # shellcheck disable=SC2254 # It is a pattern.
    case $1 in $pattern) return 0 ;; esac
  done <"$list"
  return 1
}

sed -n 's/^(skip) //p; s/^(todo) //p' "$1" | sort -u | {
  status=0
  while IFS= read -r name; do
    is_listed "$name" && continue
    echo "skipped without a reason in .ci/skips: $name"
    status=1
  done
  exit "$status"
}
