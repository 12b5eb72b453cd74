/** Returns whether it was still there: a process that a test ends may exit by itself at that moment. */
export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
