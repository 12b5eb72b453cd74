#!/bin/bash
# What a hook in bash and jq does for the same job: the project whose resume file lists the session, of several the one
# that was updated last; its next action, and the files that it wants loaded.
cd "$CLAUDE_PROJECT_DIR" || exit 0
id=$(jq -r '.session_id // empty')
[ -n "$id" ] || exit 0
found=$(awk -v id="\"$id\"" '
  FNR == 1 { marks = 0; key = "" }
  /^---/ { marks++ }
  marks != 1 { next }
  /^[a-z_]+:/ {
    key = $1; sub(/:$/, "", key)
    value = $0; sub(/^[a-z_]+: */, "", value); gsub(/^"|"$/, "", value)
    fields[FILENAME, key] = value
  }
  /^ *- / && key == "files_to_load" {
    gsub(/^ *- "?|"$/, "")
    files[FILENAME] = files[FILENAME] "\n" $0
  }
  key ~ /^session_ids?$/ && index($0, id) && fields[FILENAME, "last_updated"] > fields[best, "last_updated"] {
    best = FILENAME
  }
  END {
    if (best == "") exit
    printf "%s\n%s\n%s\n", best, fields[best, "project_name"], fields[best, "current_phase"]
    printf "%s\n%s%s\n", fields[best, "last_updated"], fields[best, "next_action"], files[best]
  }' 02-projects/*/01-planning/resume-context.md)
[ -n "$found" ] || exit 0
{
  read -r resume; read -r name; read -r phase; read -r updated; read -r action
  folder=${resume%/01-planning/*}
  printf 'HANDOVER: project %s "%s", phase %s (it lists this session).\n' "${folder##*/}" "$name" "$phase"
  printf 'Next action: %s\nResume file: %s, last updated %s\n\n' "$action" "$resume" "$updated"
  missing=
  while read -r path; do
    if [ -f "$folder/$path" ]; then
      printf -- '--- HANDOVER FILE %s ---\n%s\n--- END ---\n' "$path" "$(<"$folder/$path")"
    else
      missing+="- $path (does not exist)"$'\n'
    fi
  done
  [ -n "$missing" ] && printf 'Not shown here; read what you need:\n%s' "$missing"
} <<<"$found"
exit 0
