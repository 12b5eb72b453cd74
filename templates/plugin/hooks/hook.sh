#!/bin/sh
# The hooks of the plugin: hook.sh <cpm|faber|handover> <session-start|pre-compact|session-end>, claude's JSON on stdin.
# Always ends with 0 and never holds a session up: without Bun it says what the session has to do by itself.

# A worker of a session group has these hooks in its own settings.
[ -n "${CLAUDE_CODE_AGENT_ATTEMPT:-}" ] && exit 0

# Exit code 2 of a hook would forbid the compaction.
trap 'exit 0' EXIT
# The launcher knows every form of the package: a checkout, what npm installs, and a released program.
"$(dirname "$0")/../../../bin/claude-code-agent" hook "$@"
case $?/$1/$2 in
  12[67]/cpm/session-start)
    echo 'The hooks of the plugin cpm could not start, because no Bun was found: install Bun, or set CLAUDE_CODE_AGENT_BUN.'
    echo 'Until then no state is loaded: read docs/plans/.cpm-progress-*.md of the project yourself, if there is any.'
    ;;
esac
