#!/bin/bash
# What a hook in bash and jq does for the same job: the id, then every progress file with its label, stale ones named.
id=$(jq -r '.session_id // empty')
[ -n "$id" ] && echo "CPM_SESSION_ID: $id"
plans=$CLAUDE_PROJECT_DIR/docs/plans
old=$(find "$plans" -maxdepth 1 -name '.cpm-progress-*.md' -mmin +2880)$'\n'
stale=
for file in "$plans"/.cpm-progress-*.md; do
  [ -f "$file" ] || continue
  text=$(<"$file")
  [[ $text =~ '**Skill**: '([^$'\n']*) ]]; skill=${BASH_REMATCH[1]}
  [[ $text =~ '**Phase**: '([^$'\n']*) ]]; phase=${BASH_REMATCH[1]}
  if [[ $old == *"$file"$'\n'* ]]; then
    stale+="STALE: $skill — $phase — file: $file (older than 48h). To remove: delete $file"$'\n'
    continue
  fi
  printf '\n--- CPM SESSION STATE (%s — %s) [%s] ---\n%s\n--- END ---\n' "$skill" "$phase" "${file##*/}" "$text"
done
[ -n "$stale" ] && printf '\nWARNING: these files are old:\n%s' "$stale"
printf '\nNOTE: Found CPM session state. Ask whether to continue or to discard it.\n'
exit 0
