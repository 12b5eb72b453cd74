#!/bin/sh
# Rehearses one change over two toy repositories in DIR (default: a new temporary folder), without an account and at no
# cost: five sessions in worktrees of their own, one of which is sent back by its accept command. Then shows what each
# changed and merges it: main of both repositories moves, or neither. The exit code is that of the run, or of the merge.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
cca=$here/../../bin/claude-code-agent
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/rate-limits.XXXXXX")}
[ -d "$dir/api" ] || sh "$here/setup.sh" "$dir"
dir=$(cd "$dir" && pwd -P)

group=$("$cca" group create rate-limits --from "$here/workflow.yaml" --var "dir=$dir")
"$cca" group run "$group" --rehearse "$here/rehearsal.yaml" --dry-run
"$cca" group run "$group" --rehearse "$here/rehearsal.yaml" --keep --output text || exit

echo
"$cca" group diff "$group" --stat
echo
"$cca" group merge "$group" --yes

for project in api web; do
  echo
  echo "$dir/$project"
  git -C "$dir/$project" --no-pager log --graph --oneline
done
