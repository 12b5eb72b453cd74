/**
 * The environment of a keeper: a process of ours above the program of an attempt that ends, when the program has ended,
 * all that it left (subreaper-exec.ts, `keep`). It outlives the runner. It is no process of the attempt, so what it is
 * to hand on has other names in its own environment, and whoever looks for the marks of the attempt passes it over.
 */
type Variables = Readonly<Record<string, string | undefined>>;

/** Says in the environment of a keeper whose it is. */
export const keeperMark = 'CLAUDE_CODE_AGENT_KEEPER';
const prefix = 'KEPT_';

/** What a keeper is started with, for a program that is to be started with `env`. */
export function keeperEnvironment(name: string, env: Variables): Record<string, string> {
  const kept = Object.entries(env).map(([key, value]) => [`${prefix}${key}`, value ?? '']);
  return { ...Object.fromEntries(kept), [keeperMark]: name };
}

/** The environment of the program, from that of its keeper. */
export function keptEnvironment(env: Variables): Record<string, string> {
  const kept = Object.entries(env).filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(kept.map(([key, value]) => [key.slice(prefix.length), value ?? '']));
}
