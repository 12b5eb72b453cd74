#!/bin/sh
# Compiles the program unless that was done since its sources changed. Without it the launcher runs the sources, which
# only takes longer to start; so a failure is told and is none of the installation.
root=$(cd "$(dirname "$0")/.." && pwd -P)
. "$root/bin/find-bun.sh"
. "$root/bin/find-compiled.sh"

compile() {
  find_bun "$root"
  [ -n "$bun" ] || { echo 'no Bun found'; return 1; }
  # What a build that was killed has left.
  for old in "$root"/dist/.new-*; do kill -0 "${old##*-}" 2>/dev/null || rm -rf "$old"; done
  new=$root/dist/.new-$$
  trap 'rm -rf "$new"' EXIT
  trap 'exit 130' HUP INT TERM
  mkdir -p "$new" && : >"$new/begin" || return 1
  # Bun keeps a file of its own in the folder it is called in.
  cd "$new" || return 1
  "$bun" --no-env-file --config=/dev/null --no-install "$root/scripts/build.ts" "$new/program" || return 1
  # Whatever changed while it was compiled has to be newer than it.
  "$new/program" --version >/dev/null && touch -r "$new/begin" "$new/program" &&
    mv -f "$new/program" "$root/dist/claude-code-agent"
}

# A chosen Bun runs the sources; an up-to-date program is not compiled again.
(unset CLAUDE_CODE_AGENT_BUN && find_compiled "$root") && exit 0
said=$(compile 2>&1) && exit 0
echo "The program was not compiled and runs from its sources, which start more slowly: $said" >&2
