/**
 * A keeper: a shell above a program, which ends all that the program left when that has ended, and only then ends as
 * the program did. It outlives the runner. Orphans come to it at once, so nothing can get away between the two, as it
 * could if whoever ends the rest had to find it after the last process that held it together is gone.
 *
 * A shell, because one is kept for every worker: it takes a thirtieth of the memory and of the start that Bun takes.
 */
type Variables = Readonly<Record<string, string | undefined>>;

/** Says in the environment of a keeper whose it is. */
export const keeperMark = 'CLAUDE_CODE_AGENT_KEEPER';
const prefix = 'KEPT_';
const searchPath = '/usr/local/bin:/usr/bin:/bin';
/** `$0` of a keeper, by which people know it in a list of processes. */
export const keeperName = 'claude-code-agent-keeper';

/**
 * What a keeper is started with, for a program that is to be started with `env`; without a name it says not whose it
 * is. It is no process of the attempt, so what it hands on has other names in its own environment, and whoever looks
 * for the marks of the attempt passes it over. They are numbers, for a shell drops every variable whose name is none
 * to it.
 */
export function keeperEnvironment(name: string | null, env: Variables): Record<string, string> {
  const kept = Object.entries(env).map(([key, value], index) => [`${prefix}${index}`, `${key}=${value ?? ''}`]);
  const mark = name === null ? {} : { [keeperMark]: name };
  return { ...Object.fromEntries(kept), ...mark, PATH: process.env.PATH ?? searchPath };
}

/** The environment of the program, from that of its keeper. */
export function keptEnvironment(env: Variables): Record<string, string> {
  const kept = Object.entries(env).filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(kept.map(([, value = '']) => splitAt(value, value.indexOf('='))));
}

function splitAt(text: string, index: number): [string, string] {
  return [text.slice(0, index), text.slice(index + 1)];
}

/**
 * `parent`: pid of who starts it; it starts nothing when that is not its parent any more, for then nobody would know
 * that it runs. `group`: folder of the control group of the program; empty = it has none of its own. `program`: begins
 * with what releases it.
 */
export function keeperCommand(parent: number, group: string, program: readonly string[]): string[] {
  return ['/bin/sh', '-c', script, keeperName, String(parent), group, ...program];
}

/**
 * Signals are meant for the program, which gets them as well; this process ends with it. While a shell waits, it takes
 * in all children that have ended. What is left is asked to end, and after 300 ms (15 looks) killed: by its session,
 * because the sessions of what is below were made below, and all of one ends at once, also what is just being started;
 * then again and again what has come here, for a chain of processes that start another and end is never in a list that
 * takes long to read, but each of them is a child of ours for the whole of its short life. After 10 s (500 looks)
 * something hangs in the system that no signal ends. Whoever was killed by a signal is followed by that signal, but
 * not by one that stops.
 */
const script = `
[ "$PPID" = "$1" ] || exit 127
group=$2
shift 2
unset ${keeperMark}
exec 3>&2 2>/dev/null
trap : TERM INT HUP
(exec "$@" 2>&3 3>&-)
code=$?
exec 3>&-
left() { left=; read -r left <"/proc/$$/task/$$/children"; [ -n "$left" ]; }
held() {
  [ -r "$group/cgroup.events" ] || return 1
  while read -r key value; do [ "$key $value" != 'populated 1' ] || return 0; done <"$group/cgroup.events"
  return 1
}
below() {
  for list in /proc/$1/task/*/children; do
    found=
    read -r found <"$list"
    for pid in $found; do all="$all $pid"; below "$pid"; done
  done
}
looks=0
while [ $looks -lt 500 ] && { left || held; }; do
  all=
  [ $looks -gt 0 ] && [ $looks -lt 15 ] || below $$
  if [ $looks -eq 0 ]; then kill -TERM $all; fi
  if [ $looks -ge 15 ]; then
    held && echo 1 >"$group/cgroup.kill"
    for pid in $all; do
      stat=
      read -r stat <"/proc/$pid/stat"
      set -- \${stat##*) }
      [ "\${4:-0}" -gt 1 ] && [ "$4" != $$ ] && kill -KILL -- "-$4"
      kill -KILL "$pid"
    done
    tries=0
    while [ $tries -lt 500 ] && left; do
      kill -KILL $left
      tries=$((tries + 1))
    done
  fi
  looks=$((looks + 1))
  sleep 0.02 || sleep 1
done
case $code in
  147 | 148 | 149 | 150) ;;
  129 | 1[3-5]? | 16[0-4])
    trap - TERM INT HUP
    kill -$((code - 128)) $$
    ;;
esac
exit $code
`.trim();
