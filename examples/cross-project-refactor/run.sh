#!/bin/sh
# Rehearses the group over three toy projects in DIR (default: a new temporary folder), without an account and at
# no cost, then shows what changed. The exit code is that of the run.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/cross-project-refactor.XXXXXX")}
[ -d "$dir/project-a" ] || sh "$here/setup.sh" "$dir"
dir=$(cd "$dir" && pwd -P)
# By a path that is not absolute, so that what it advises is the path of this clone.
cd "$here/../.."
cca=bin/claude-code-agent

group=$("$cca" group create cross-project-refactor --from "$here/workflow.yaml" --var "dir=$dir")

code=0
"$cca" group run "$group" --rehearse "$here/rehearsal.yaml" --keep --output text || code=$?

for project in project-a project-b project-c; do
  echo
  echo "$dir/$project"
  # New files are shown too once git knows that they are meant to be added.
  git -C "$dir/$project" add --intent-to-add --all
  git -C "$dir/$project" --no-pager diff --stat
done
exit "$code"
