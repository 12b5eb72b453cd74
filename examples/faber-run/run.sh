#!/bin/sh
# Rehearses the shipped workflow `faber` on a toy repository in DIR (default: a new temporary folder), without an
# account and at no cost, then shows the run of FABER and what changed. The exit code is that of the group.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
bin=$(cd "$here/../../bin" && pwd -P)
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/faber-run.XXXXXX")}
[ -d "$dir/shop" ] || sh "$here/setup.sh" "$dir"
dir=$(cd "$dir" && pwd -P)

# The sessions record their phases with `claude-code-agent faber`, so they must find it.
PATH=$bin:$PATH
export PATH

code=0
claude-code-agent run faber --var work_id=258 --var work='Prices are shown in euros, such as 12.50 €' \
  --var project="$dir/shop" --var check_command='npm test' --rehearse "$here/rehearsal.yaml" --output text || code=$?

echo
claude-code-agent faber status --project "$dir/shop"
echo
# New files are shown too once git knows that they are meant to be added.
git -C "$dir/shop" add --intent-to-add --all
git -C "$dir/shop" --no-pager diff --stat
exit "$code"
