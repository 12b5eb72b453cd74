#!/bin/sh
# Rehearses the group over three toy projects in DIR (default: a new temporary folder), without an account and at
# no cost, then shows what changed. The exit code is that of the run.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
cca=$here/../../bin/claude-code-agent
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/cross-project-refactor.XXXXXX")}
[ -d "$dir/project-a" ] || sh "$here/setup.sh" "$dir"
dir=$(cd "$dir" && pwd -P)

group=$("$cca" group create cross-project-refactor --name 'Cross-Project Auth Refactor' \
  --description 'Refactor authentication across multiple services' --model opus --max-budget-usd 10 --concurrent 3)

# In the mode acceptEdits files may be edited, but a program such as node needs a rule of its own.
add() { "$cca" session add "$group" --allowed-tools 'Bash(node:*)' "$@" >/dev/null; }

add --name auth-module --project "$dir/project-a" --description 'Implement auth module' \
  --prompt 'Implement an auth module that keeps passwords as salted hashes. Add tests; do not change the login yet.'
add --name shared-library --project "$dir/project-b" --description 'Update shared library' \
  --prompt 'Add a comparison in constant time to the shared library, with tests, and release it as 1.1.0.'
# Both work in project-a, so the integration also waits for the auth module.
add --name integration --project "$dir/project-a" --description 'Integrate shared lib' \
  --depends-on auth-module --depends-on shared-library \
  --prompt 'Use the auth module in the login, and the shared library in the auth module. Keep all tests passing.'
add --name documentation --project "$dir/project-c" --description 'Update documentation' --depends-on integration \
  --prompt 'Bring the handbook up to date with the new login and the shared library.'

code=0
"$cca" group run "$group" --rehearse "$here/rehearsal.yaml" --output text || code=$?

for project in project-a project-b project-c; do
  echo
  echo "$dir/$project"
  # New files are shown too once git knows that they are meant to be added.
  git -C "$dir/$project" add --intent-to-add --all
  git -C "$dir/$project" --no-pager diff --stat
done
exit "$code"
