#!/bin/sh
# Runs the tests and closes with the plain line "N passed, N failed, N skipped".
# Bun's JUnit output misses files that fail to load, so its own closing lines are counted.
root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root" || exit 1
# Many tests wait for processes to end, so one worker more than there are cores keeps the cores busy.
workers=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1))
log=
status=
trap 'rm -f "$log" "$status"' EXIT
trap 'exit 130' HUP INT TERM
log=$(mktemp) && status=$(mktemp) || exit 1
{ sh scripts/bun.sh test --parallel="$workers" --timeout 120000 "$@" 2>&1; echo $? >"$status"; } | tee "$log"
code=$(cat "$status")
awk '/^ *[0-9]+ (pass|fail|skip|todo)$/ { n[$2] = $1 }
  END { printf "%d passed, %d failed, %d skipped\n", n["pass"], n["fail"], n["skip"] + n["todo"] }' "$log"
exit "$code"
