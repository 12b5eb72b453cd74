/**
 * A claude that works step by step and keeps a conversation like the real one, so that it continues where that ends, on
 * any host. It records its steps in a log outside the product, and holds a lock while it or one of its tools lives, so
 * that a second claude of its session is detected at once.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../src/claude/launch/environment.ts';

/** Cost of one step: 2,000 input tokens at the price of the model that it names. */
export const stepUsd = 0.01;

export interface SteppingOptions {
  readonly steps: number;
  readonly stepSeconds: number;
}

const logOf = (folder: string): string => join(folder, 'steps.log');

/** `log`, `locks`, `steps` and `seconds` are set before it. */
const body = `case $1 in
auth) echo '{"loggedIn":true,"authMethod":"api_key"}'; exit 0 ;;
--version) echo '2.1.332 (Stepping Claude)'; exit 0 ;;
--help) echo 'no options'; exit 0 ;;
esac
while [ $# -gt 0 ]; do
  case $1 in --session-id) id=$2 kind=new ;; --resume) id=$2 kind=resumed ;; esac
  shift
done
# One write each, so that lines of several do not mix.
note() { read -r up rest </proc/uptime; printf '%s\\n' "$up $id $${attemptMark} $*" >>"$log"; }
say() { printf '%s\\n' "{\\"session_id\\":\\"$id\\",$1}"; }
keep() {
  at=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
  printf '%s\\n' "{\\"sessionId\\":\\"$id\\",\\"timestamp\\":\\"$at\\",$1}" >>"$talk"
}
exec 9>>"$locks/$id"
if ! flock -n 9; then note second; exit 1; fi
while IFS= read -r prompt; do
  case $prompt in *'"type":"user"'*) break ;; esac
done
[ -n "$prompt" ] || exit 1
talk=$CLAUDE_CONFIG_DIR/projects/$(pwd -P | LC_ALL=C sed 's/[^A-Za-z0-9]/-/g')
mkdir -p "$talk"
talk=$talk/$id.jsonl
[ $kind = resumed ] || [ ! -s "$talk" ] || { note again; exit 1; }
[ $kind = new ] || [ -s "$talk" ] || { note forgot; exit 1; }
done=0 asked=0
if [ -s "$talk" ]; then
  done=$(grep -c '"tool_result"' "$talk")
  asked=$(grep -c '"tool_use"' "$talk")
fi
note begin $done $asked
hook='"type":"system","hook_id":"h","hook_name":"SessionStart:startup","hook_event":"SessionStart"'
say "$hook,\\"subtype\\":\\"hook_response\\",\\"outcome\\":\\"success\\""
say '"type":"system","subtype":"init","model":"claude-opus-4-8","claude_code_version":"2.1.332","cwd":"/p","tools":[]'
keep '"type":"user","message":{"role":"user","content":"go on"}'
turns=0
none='"cache_read_input_tokens":0,"cache_creation_input_tokens":0'
usage='"usage":{"input_tokens":2000,"output_tokens":0,'$none'}'
while [ $done -lt $steps ]; do
  step=$((done + 1)) turns=$((turns + 1))
  tool='{"type":"tool_use","id":"t'$step'","name":"Bash","input":{"command":"step '$step'"}}'
  message='"id":"m-'$$-$up-$step'","role":"assistant","model":"claude-opus-4-8",'$usage',"content":['$tool']'
  message='"type":"assistant","message":{'$message'}'
  note ask $step
  say "$message"
  keep "$message"
  note asked $step
  sleep $seconds
  echo $step >>"$id.txt"
  if [ $((step % 3)) -eq 0 ]; then
    git add "$id.txt"
    git -c user.name=C -c user.email=c@localhost commit --quiet -m "step $step"
  fi
  result='{"type":"tool_result","tool_use_id":"t'$step'","content":"made"}'
  result='"type":"user","message":{"role":"user","content":['$result']}'
  keep "$result"
  note did $step
  say "$result"
  done=$step
done
usd=$(awk "BEGIN { printf \\"%.2f\\", $turns * ${stepUsd} }")
models='"inputTokens":'$((turns * 2000))',"outputTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0'
models='"modelUsage":{"claude-opus-4-8":{'$models',"costUSD":'$usd'}}'
note result $turns
result='"type":"result","subtype":"success","is_error":false,"num_turns":'$turns',"duration_ms":9,"result":"done"'
say "$result,\\"total_cost_usd\\":$usd,$models"
say '"type":"system","subtype":"session_state_changed","state":"idle"'
while IFS= read -r request; do :; done
`;

/** Its program, in the folder. */
export function steppingClaude(folder: string, { steps, stepSeconds }: SteppingOptions): string {
  const [program, locks] = [join(folder, 'claude'), join(folder, 'locks')];
  mkdirSync(locks);
  writeFileSync(logOf(folder), '');
  const settings = `log='${logOf(folder)}' locks='${locks}' steps=${steps} seconds=${stepSeconds}`;
  writeFileSync(program, `#!/bin/sh\n${settings}\n${body}`);
  chmodSync(program, 0o755);
  return program;
}

export type Word = 'second' | 'again' | 'forgot' | 'begin' | 'ask' | 'asked' | 'did' | 'result';

export interface Noted {
  /** Uptime of the machine, milliseconds. */
  readonly atMs: number;
  readonly claudeSessionId: string;
  readonly attemptId: string;
  readonly word: Word;
  readonly numbers: readonly number[];
}

/** The records of all of them in order. */
export function stepsNoted(folder: string): readonly Noted[] {
  if (!existsSync(logOf(folder))) return [];
  const lines = readFileSync(logOf(folder), 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => {
    const [up = '', claudeSessionId = '', attemptId = '', word = '', ...numbers] = line.split(' ');
    return { atMs: Number(up) * 1_000, claudeSessionId, attemptId, word: word as Word, numbers: numbers.map(Number) };
  });
}
