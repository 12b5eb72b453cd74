#!/bin/sh
# The smallest program that a runner takes for claude: in BENCH_STEPS steps (1 unless told) of BENCH_STEP_SECONDS each it
# works, says a few lines and then, as claude does, waits for more input until that ends or SIGTERM comes. Only `sleep` is
# a process of its own, so that peers, which start this very program, are not held up by it either.
case $1 in
auth) echo '{"loggedIn":true,"authMethod":"api_key"}'; exit 0 ;;
--version) echo '2.1.332 (Tiny Claude)'; exit 0 ;;
--help) echo 'no options'; exit 0 ;;
esac
while [ $# -gt 0 ]; do
  case $1 in --session-id | --resume) id=$2 ;; esac
  shift
done
hook='"type":"system","hook_id":"h","hook_name":"SessionStart:startup","hook_event":"SessionStart"'
usage='"inputTokens":1000,"outputTokens":200,"cacheReadInputTokens":30,"cacheCreationInputTokens":4,"costUSD":0.01'
say() { printf '%s\n' "{\"session_id\":\"$id\",$1}"; }
while IFS= read -r prompt; do
  case $prompt in *'"type":"user"'*) break ;; esac
done
seconds=${BENCH_STEP_SECONDS:-1}
say "$hook,\"subtype\":\"hook_response\",\"outcome\":\"success\""
say '"type":"system","subtype":"init","model":"claude-opus-4-8","claude_code_version":"2.1.332","cwd":"/p","tools":[]'
step=1
while [ "$step" -le "${BENCH_STEPS:-1}" ]; do
  call='{"type":"tool_use","id":"t'$step'","name":"Bash","input":{"command":"make part"}}'
  say '"type":"assistant","message":{"id":"m'$step'","model":"claude-opus-4-8","content":['"$call"']}'
  sleep "$seconds"
  result='{"type":"tool_result","tool_use_id":"t'$step'","content":"made","is_error":false}'
  say '"type":"user","message":{"role":"user","content":['"$result"']}'
  step=$((step + 1))
done
money='"total_cost_usd":0.01,"modelUsage":{"claude-opus-4-8":{'$usage'}}'
say '"type":"result","subtype":"success","is_error":false,"num_turns":4,"duration_ms":9,"result":"done",'"$money"
say '"type":"system","subtype":"session_state_changed","state":"idle"'
while IFS= read -r request; do :; done
