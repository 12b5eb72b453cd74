# Sourced by the launcher and by scripts/build.sh. Sets `compiled` to the path of the executable that was compiled from
# the sources in $1, the package's root folder. Fails when there is none, when something changed since, when a certain
# Bun is asked for, and in a deleted folder, where it cannot start. Change times (ctime) are compared, because
# they cannot be set: files copied with old times count as new. The executable itself was finished after its time and has to be among
# what changed since: a copy with a time of its own does not tell when it was compiled.
find_compiled() {
  compiled=$1/dist/claude-code-agent
  [ -z "${CLAUDE_CODE_AGENT_BUN:-}" ] && [ -s "$compiled" ] && [ -x "$compiled" ] && [ . -ef "$PWD" ] || return 1
  set -- "$1/src" "$1/package.json" "$1/scripts/build.ts" "$1/node_modules/.package-lock.json"
  # What another package depends on lies beside it.
  [ -e "$4" ] || set -- "$1" "$2" "$3"
  newer=$(find -H "$compiled" "$@" -cnewer "$compiled" 2>/dev/null) && [ "$newer" = "$compiled" ]
}
