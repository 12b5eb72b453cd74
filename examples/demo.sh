#!/bin/sh
# The demonstration behind `npm run demo`: a whole group over three toy projects with the real Claude Code program and
# a scripted model. It needs no account and touches nothing outside a new temporary folder. On a terminal it is shown in
# the dashboard, as `cca try` does; elsewhere it is printed, and the folder is left to look at.
set -u
command -v git >/dev/null || { echo "demo: git is needed for the repositories it makes; install it" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd -P)
# By a path that is not absolute, so that what it advises is the path of this clone.
cd "$here/.." || exit 1
[ -t 0 ] && [ -t 1 ] && exec bin/claude-code-agent try
work=$(mktemp -d "${TMPDIR:-/tmp}/claude-code-agent-demo.XXXXXX") || exit 1
CLAUDE_CODE_AGENT_HOME=$work/data
XDG_CONFIG_HOME=$work/config
export CLAUDE_CODE_AGENT_HOME XDG_CONFIG_HOME

sh "$here/cross-project-refactor/run.sh" "$work/projects"
code=$?

echo
echo "Everything is in $work:"
for group in "$work"/data/session-groups/*/; do
  [ -d "$group" ] || continue
  echo "  group        ${group%/}"
  for session in "$group"sessions/*/; do
    [ ! -f "${session}transcript.jsonl" ] || echo "  transcript   ${session}transcript.jsonl"
  done
done
echo "  commands     export CLAUDE_CODE_AGENT_HOME='$work/data'"
for project in "$work"/projects/*/; do
  [ ! -d "$project" ] || echo "  diff         git -C '${project%/}' diff"
done
exit "$code"
