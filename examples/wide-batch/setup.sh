#!/bin/sh
# Makes twelve toy git repositories in DIR, each with a README and a change log. Refuses to touch existing ones.
set -eu
[ $# -eq 1 ] || { echo "usage: setup.sh DIR" >&2; exit 2; }
command -v git >/dev/null || { echo "setup.sh: git is needed for the repositories it makes; install it" >&2; exit 2; }
mkdir -p "$1"
cd "$1"

# Neither the user's git settings nor a repository around us may change what is made here.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Example GIT_AUTHOR_EMAIL=example@example.invalid
export GIT_COMMITTER_NAME=Example GIT_COMMITTER_EMAIL=example@example.invalid

for name in accounts billing catalog delivery events forms gateway history invoices jobs keys ledger; do
  [ ! -e "$name" ] || { echo "setup.sh: $1/$name exists already" >&2; exit 2; }
  mkdir "$name"
  printf '# %s\n\nThe %s service.\n' "$name" "$name" >"$name/README.md"
  printf '# Changes\n\n## Unreleased\n\n## 1.0.0\n\n- First release\n' >"$name/CHANGELOG.md"
  git -c init.defaultBranch=main init --quiet "$name"
  git -C "$name" add --all
  git -C "$name" commit --quiet --message "The $name service"
done
