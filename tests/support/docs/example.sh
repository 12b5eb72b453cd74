#!/bin/sh
# The command `example` of the documents: prepares what a reader of a page already has.
set -e
case "${1:-}" in
'' | web)
  cca group create auth-refactor --max-budget-usd 5
  cca session add auth-refactor --name api --project ~/src/api --prompt "Add a verifyToken function with tests"
  [ "${1:-}" != web ] ||
    cca session add auth-refactor --name web --project ~/src/web --depends-on api --prompt "Use verifyToken of ../api"
  ;;
work)
  # A group with work to merge.
  cca group create rate-limits
  cca session add rate-limits --name server --project "${2:-$HOME/src/api}" --isolate worktree --prompt "Add rate limits"
  cca group run rate-limits
  ;;
denied)
  # A group whose only session fails, because its tool calls are denied.
  cca group create "$2" --max-budget-usd 5
  cca session add "$2" --name release --project ~/src/api --prompt "Release it"
  cca group run "$2" || test $? -eq 1
  ;;
workflow)
  printf 'version: 1\nvars: { ticket: {required: true} }\nsessions:\n  docs: { project: docs, prompt: "Describe {{ticket}}" }\n' >change.yaml
  ;;
library)
  # Three repositories, two of which use the library by path.
  cp -r api library
  cp -r api service
  for name in web service; do
    (
      cd "$name"
      printf '{"name":"%s","version":"1.0.0","dependencies":{"api":"file:../library"},"scripts":{"test":"test -f node_modules/api/library.md"}}\n' "$name" >package.json
      npm install --offline --silent
      git add --all
      git commit --quiet --message library
    )
  done
  ;;
fleet)
  # A fleet whose other host is another home on this machine, reached by a simulated ssh.
  mkdir -p "$HOME/played" "$HOME/there" "$HOME/redis"
  printf '#!/bin/sh\nfor last; do :; done\nHOME=%s exec sh -c "$last"\n' "$HOME/there" >"$HOME/played/ssh"
  chmod +x "$HOME/played/ssh"
  cca group create wide
  cca session add wide --project ~/src/api --prompt "Describe the API in API.md." --isolate worktree
  ;;
esac
