#!/bin/sh
# Makes `npm run demo` and `npm test` work in a fresh clone: installs when the packages are missing or older than the
# lock file, and compiles the program when its sources changed since. Output goes to stderr so that it never mixes with
# what the command prints.
root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root" || exit 1
marker=node_modules/.package-lock.json
is_current() { [ -f "$marker" ] && [ ! package-lock.json -nt "$marker" ]; }
is_current && exec sh scripts/build.sh
# npm empties the folder that a link leads to, which another checkout may be working with.
[ -h node_modules ] && {
  echo "node_modules is a link to packages that do not fit package-lock.json. Install them where they are, or remove" \
    "the link ($root/node_modules)." >&2
  exit 1
}

# Two installations in one folder spoil each other, so the second waits. The lock is a link that leads to the process
# id of its holder: made in one step, by one process only.
lock=.install-lock
lives() { kill -0 "$1" 2>/dev/null || [ -d "/proc/$1" ]; }
waits_for=
while ! ln -s "$$" "$lock" 2>/dev/null; do
  [ -w . ] || { echo "Cannot write $root. Check the folder and its permissions." >&2; exit 1; }
  # Only one process at a time checks for a dead holder; a second one would remove the next holder's lock.
  if mkdir "$lock.look" 2>/dev/null; then
    holder=$(readlink "$lock") && ! lives "$holder" && rm -f "$lock"
    rmdir "$lock.look"
  fi
  holder=$(readlink "$lock") || continue
  [ "$holder" = "$waits_for" ] || echo "Waiting for process $holder to install packages ($root/$lock) ..." >&2
  waits_for=$holder
  sleep 1
done
trap 'rm -f "$lock"' EXIT
trap 'exit 130' HUP INT TERM

# The other process has installed them.
is_current && { sh scripts/build.sh; exit 0; }
echo "Installing packages (once) ..." >&2
# A registry may lack packages for other platforms that the lock file names; an ordinary install passes over them.
npm ci --no-audit --no-fund --loglevel=error >&2 ||
  npm install --no-save --no-audit --no-fund --loglevel=error >&2 || exit 1
# Only when it must be: the program that was compiled by the installation would count as older than its packages.
is_current || touch "$marker"
sh scripts/build.sh
