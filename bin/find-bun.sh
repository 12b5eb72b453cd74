# Sourced by the launcher and by scripts/. Prints the path of a Bun that really starts: the one this
# package depends on first (npm puts it into one of two places, depending on whether its postinstall ran),
# then the one on PATH. $1 is the package's root folder.
find_bun() {
  if [ -n "${CLAUDE_CODE_AGENT_BUN:-}" ]; then
    printf '%s\n' "$CLAUDE_CODE_AGENT_BUN"
    return
  fi
  for modules in "$1/node_modules" "$1/.."; do
    for candidate in "$modules"/bun/bin/bun.exe "$modules"/@oven/bun-*/bin/bun; do
      # Until its postinstall has run, the npm package holds a script there that only explains itself and fails.
      if [ -x "$candidate" ] && "$candidate" --version >/dev/null 2>&1; then
        printf '%s\n' "$candidate"
        return
      fi
    done
  done
  command -v bun
}
