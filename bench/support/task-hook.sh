#!/bin/bash
# What a hook in bash and jq does for the same job: whose session this is and, after a compaction, its task once more.
read -r id source <<<"$(jq -r '"\(.session_id) \(.source)"')"
echo "Claude Code session $id, run unattended: nobody can answer questions, so decide and go on."
[ "$source" = compact ] || exit 0
prompt=$(<"${CLAUDE_CONFIG_DIR%/*}/prompt.md")
printf 'The conversation was compacted. Your task, as it was given to you:\n\n%s\n' "$prompt"
exit 0
