#!/bin/sh
# Runs the tests of the given folders or files and closes with the plain line "N passed, N failed, N skipped".
# Bun's JUnit output misses files that fail to load, so its own closing lines are counted.
root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root" || exit 1
# Many tests wait for processes to end or for leases, so two workers more than there are cores keep the cores busy.
workers=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 2))
folder=
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM
# The tests make and remove some hundred thousand files. In memory that takes half the time, where there is room for them
# and programs may be started from there.
for place in /dev/shm "${TMPDIR:-/tmp}"; do
  folder=$(mktemp -d "$place/cca-test-XXXXXX" 2>/dev/null) || continue
  free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
  printf '#!/bin/sh\n' >"$folder/try" && chmod +x "$folder/try"
  if [ "$place" != /dev/shm ] || { [ "${free:-0}" -ge 1000000 ] && "$folder/try" 2>/dev/null; }; then break; fi
  rm -rf "$folder"
done
[ -d "$folder" ] || exit 1
# Some tests act as another user, who must be able to get in.
chmod 755 "$folder" && mkdir -m 1777 "$folder/tmp" || exit 1
log=$folder/log
status=$folder/status
export TMPDIR="$folder/tmp"
# Modules keep nothing of what was done with them, so that a worker loads each once instead of once a file; and what took
# long the last time here begins first, so that no core waits for it at the end.
timings=node_modules/.cache/test-timings.json
mkdir -p node_modules/.cache
{
  sh scripts/bun.sh test --parallel="$workers" --no-isolate --timings="$timings" --update-timings --timeout 120000 "$@" 2>&1
  echo $? >"$status"
} | tee "$log"
code=$(cat "$status")
# Tests that this machine or this user cannot run are named.
sed -n 's/^(skip) //p' "$log" | sort -u >"$folder/skipped"
if [ -s "$folder/skipped" ]; then
  echo "Skipped, because this machine or this user lacks what they need:"
  sed 's/^/  /' "$folder/skipped"
fi
awk '/^ *[0-9]+ (pass|fail|skip|todo)$/ { n[$2] = $1 }
  END { printf "%d passed, %d failed, %d skipped\n", n["pass"], n["fail"], n["skip"] + n["todo"] }' "$log"
exit "$code"
