#!/bin/sh
# Rehearses one prompt over twelve toy repositories in DIR (default: a new temporary folder), four at a time, without
# an account and at no cost, then shows what changed. The exit code is that of the run.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
cca=$here/../../bin/claude-code-agent
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/wide-batch.XXXXXX")}
[ -d "$dir/accounts" ] || sh "$here/setup.sh" "$dir"
dir=$(cd "$dir" && pwd -P)

group=$("$cca" group create wide-batch --name 'Security policies' --description 'One prompt over twelve repositories' \
  --model opus --max-budget-usd 10 --concurrent 4)
for project in "$dir"/*; do
  "$cca" session add "$group" --name "$(basename "$project")" --project "$project" \
    --prompt 'Add a SECURITY.md with our reporting address and a line about it under "Unreleased" in CHANGELOG.md.' \
    >/dev/null
done

code=0
"$cca" group run "$group" --rehearse "$here/rehearsal.yaml" --concurrent 4 --output text || code=$?

for project in "$dir"/*; do
  echo
  echo "$project"
  # New files are shown too once git knows that they are meant to be added.
  git -C "$project" add --intent-to-add --all
  git -C "$project" --no-pager diff --stat
done
exit "$code"
