#!/bin/bash
# What a hook in bash and jq does for the same job: the id, then every progress file with its label, stale ones named.
input=$(cat)
id=$(printf '%s' "$input" | jq -r '.session_id // empty')
[ -n "$id" ] && echo "CPM_SESSION_ID: $id"
now=$(date +%s)
stale=
for file in "$CLAUDE_PROJECT_DIR"/docs/plans/.cpm-progress-*.md; do
  [ -f "$file" ] || continue
  skill=$(sed -n 's/^\*\*Skill\*\*: *//p' "$file" | head -1)
  phase=$(sed -n 's/^\*\*Phase\*\*: *//p' "$file" | head -1)
  age=$((now - $(stat -c %Y "$file" 2>/dev/null || stat -f %m "$file")))
  if [ "$age" -gt 172800 ]; then
    stale="${stale}STALE: $skill — $phase — file: $file ($((age / 3600))h old). To remove: delete $file"$'\n'
    continue
  fi
  printf '\n--- CPM SESSION STATE (%s — %s) [%s] ---\n' "$skill" "$phase" "${file##*/}"
  cat "$file"
  echo '--- END ---'
done
[ -n "$stale" ] && printf '\nWARNING: these files are old:\n%s' "$stale"
printf '\nNOTE: Found CPM session state. Ask whether to continue or to discard it.\n'
exit 0
