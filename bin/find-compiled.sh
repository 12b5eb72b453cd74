# Sourced by the launcher and by scripts/build.sh. Sets `compiled` to the path of the executable that was compiled from
# the sources in $1, the package's root folder; fails when there is none, when something changed since, or when a certain
# Bun is asked for. By the time of change, which nobody can set: a copy that keeps all other times is new as well.
find_compiled() {
  compiled=$1/dist/claude-code-agent
  [ -z "${CLAUDE_CODE_AGENT_BUN:-}" ] && [ -x "$compiled" ] || return 1
  set -- "$1/src" "$1/package.json" "$1/scripts/build.ts" "$1/node_modules/.package-lock.json"
  # What another package depends on lies beside it.
  [ -e "$4" ] || set -- "$1" "$2" "$3"
  newer=$(find "$@" -cnewer "$compiled" 2>/dev/null) && [ -z "$newer" ]
}
