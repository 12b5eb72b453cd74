#!/bin/sh
# The hooks of the plugin: hook.sh <cpm|faber|handover> <session-start|pre-compact|session-end>, claude's JSON on stdin.
# Always ends with 0 and never holds a session up: without Bun it says what the session has to do by itself.

# A worker of a session group has these hooks in its own settings.
[ -n "${CLAUDE_CODE_AGENT_ATTEMPT:-}" ] && exit 0

# A shell leaves with 2 when it cannot read what it sources, and 2 would forbid the compaction.
trap 'exit 0' EXIT
# With it the compiled program would be Bun itself.
unset BUN_BE_BUN
root=$(cd "$(dirname "$0")/../../.." && pwd -P)
if [ -r "$root/bin/find-compiled.sh" ] && . "$root/bin/find-compiled.sh" && find_compiled "$root"; then
  "$compiled" hook "$@"
  exit
fi
bun=
[ -r "$root/bin/find-bun.sh" ] && . "$root/bin/find-bun.sh" && find_bun "$root"
if [ -z "$bun" ] || [ ! -x "$bun" ]; then
  if [ "$1 $2" = 'cpm session-start' ]; then
    echo 'The hooks of the plugin cpm could not start, because no Bun was found: install Bun, or set CLAUDE_CODE_AGENT_BUN.'
    echo 'Until then no state is loaded: read docs/plans/.cpm-progress-*.md of the project yourself, if there is any.'
  fi
  exit
fi
"$bun" --no-env-file --config=/dev/null --tsconfig-override=/dev/null --no-install "$root/src/hook-main.ts" "$@"
