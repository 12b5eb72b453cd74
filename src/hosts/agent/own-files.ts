/** What of a session's folder belongs to one machine alone: it never comes with an order and is never sent back. */

/** Names at the top of the folder. */
const own: ReadonlySet<string> = new Set([
  ...['transcript.jsonl', 'stderr.log', 'stdin.fifo', 'processes.json', 'meta.json', 'order.json'],
  ...['workspace.json', 'setup.done', 'remote-worktree.json', 'login-check'],
]);

/** `path` is relative to the session's folder. */
export function isOwn(path: string): boolean {
  const [top = ''] = path.split('/');
  return own.has(top) || top === 'tmp' || /^\..*\.tmp$/.test(top);
}
