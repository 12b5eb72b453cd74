# Sourced by the launcher and by scripts/. Sets `bun` to the path of a Bun that really starts: the one for this
# platform that this package depends on, or npm's own package of Bun, and then the one on PATH. $1 is the package's
# root folder. A variable, because printing takes a process.
find_bun() {
  bun=${CLAUDE_CODE_AGENT_BUN:-}
  if [ -n "$bun" ]; then return; fi
  for modules in "$1/node_modules" "$1/.."; do
    for candidate in "$modules"/bun/bin/bun.exe "$modules"/@oven/bun-*/bin/bun; do
      # Of two C libraries one is right; and npm's own package holds a script that fails until its postinstall has run.
      if [ -x "$candidate" ] && "$candidate" --version >/dev/null 2>&1; then
        bun=$candidate
        return
      fi
    done
  done
  bun=$(command -v bun)
}
