#!/bin/bash
# What a hook in bash and jq does for the same job: the run in progress and where it stands, its critical artifacts, and
# the session recorded in its state. Conditions are of the form `state.x != null`; it takes no lock and cuts nothing.
cd "$CLAUDE_PROJECT_DIR" || exit 0
read -r run 2>/dev/null <.fractary/faber/.active-run-id
state=.fractary/runs/$run/state.json
[ -n "$run" ] && [ -f "$state" ] || exit 0
read -r id status workflow <<<"$(jq -r --slurpfile state "$state" '
  "\(.session_id) \($state[0].status) \($state[0].workflow_id // "default" | split(":") | last)"')"
[ "$status" = in_progress ] || exit 0
for folder in .fractary/faber/workflows "$FABER_ROOT/workflows"; do
  config=$folder/$workflow.json
  [ -f "$config" ] && break
done
read -r _ ref 2>/dev/null <.git/HEAD
read -r commit 2>/dev/null <".git/$ref"
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)

# The lines of the run, an empty line, then the artifacts that are due: id, type and path of each.
plan=$(jq -r --arg run "$run" --arg workflow "$workflow" --arg path "$state" --slurpfile config "$config" '
  . as $state | $config[0] as $config
  | def value_at: ltrimstr("state.") | split(".") as $path | $state | getpath($path);
  [.phases | to_entries[] | select(.value.status == "completed").key] as $done
  | "FABER run \($run) (\($workflow), work item \(.work_id)): \(.status).",
    "Finished phases: \($done | join(", ")). Go on with the phase \(($config.phases | keys_unsorted) - $done | first).",
    "State: \($path). Record a finished phase with: claude-code-agent faber phase <name>",
    "",
    ($config.critical_artifacts | .always_load[], .conditional_load[]
      | select(.reload_triggers | index("session_start"))
      | select(.condition // "" | rtrimstr(" != null") | value_at != null)
      | "\(.id)\t\(.type)\t\(.path // (.path_from_state // "" | select(. != "") | value_at) // "")")' "$state")
echo "${plan%%$'\n\n'*}"
echo "Loaded at $now (session_start) for $id."
loaded=
while IFS=$'\t' read -r name type path; do
  path=${path/'{run_id}'/"$run"}
  file=${path/'{faber_root}'/"$FABER_ROOT"}
  if [ "$type" = git_info ]; then
    path=git
    text="branch: ${ref#refs/heads/}"$'\n'"commit: $commit"
  elif [ -f "$file" ]; then
    text=$(<"$file")
  else
    echo "- $name is missing: $path does not exist."
    continue
  fi
  printf -- '--- FABER ARTIFACT %s (%s) [%s] ---\n%s\n--- END ---\n' "$name" "$type" "$path" "$text"
  loaded+="$name"$'\t'"$path"$'\t'"${#text}"$'\n'
done <<<"${plan#*$'\n\n'}"

jq --arg id "$id" --arg now "$now" --arg host "$HOSTNAME" --arg cwd "$PWD" --arg commit "$commit" \
  --arg platform "${OSTYPE%%-*}" --arg loaded "$loaded" '
  [$loaded | split("\n")[] | select(. != "") | split("\t") | {
    artifact_id: .[0], loaded_at: $now, load_trigger: "session_start",
    source: .[1], size_bytes: (.[2] | tonumber), session_id: $id
  }] as $entries
  | [$entries[].artifact_id] as $ids
  | .updated_at = $now
  | .sessions |= if .current_session.session_id == $id then . else
      (if .current_session then .session_history += [.current_session + {ended_at: null}] else . end)
      | .current_session_id = $id | .total_sessions += 1
      | .current_session = {
          session_id: $id, started_at: $now, phases_completed: [],
          environment: {hostname: $host, platform: $platform, cwd: $cwd, git_commit: $commit}, artifacts_loaded: []
        }
    end
  | .sessions.current_session.artifacts_loaded |= (. + $ids | unique)
  | .context_metadata |= (.last_artifact_reload = $now | .reload_count += 1
      | .artifacts_in_context |= map(select(.artifact_id as $known | $ids | index($known) | not)) + $entries)
  ' "$state" >"$state.new" && mv "$state.new" "$state"
exit 0
