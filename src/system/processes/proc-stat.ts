/** What a line of /proc/PID/stat says of a process. */
import type { ProcEntry } from './proc-table.ts';

/**
 * One line of /proc/PID/stat, see proc_pid_stat(5). The second field is the program's name in parentheses and may
 * itself hold blanks and parentheses, so the fields are counted from the last closing one.
 */
export function parseStat(text: string): ProcEntry | null {
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  const [state, parent, , session] = fields;
  const [threads, , startTime] = fields.slice(17, 20);
  const pid = Number.parseInt(text, 10);
  if (end === -1 || startTime === undefined || Number.isNaN(pid)) return null;
  const zombie = state === 'Z' || state === 'X' || state === 'x';
  const name = text.slice(text.indexOf('(') + 1, end);
  const isSingle = threads === '1';
  const entry = { pid, parent: Number(parent), session: Number(session), name, isSingle, startTime, zombie };
  return state === 'T' ? { ...entry, halted: true } : entry;
}

/** PF_KTHREAD among the flags, the ninth field: a thread of the kernel has no environment. */
export function isOfKernel(text: string): boolean {
  const flags = text.slice(text.lastIndexOf(')') + 2).split(' ')[6];
  return (Number(flags) & 0x200000) !== 0;
}

/**
 * Its new program has no place for arguments and environment yet: arg_end and env_end, the fields 49 and 51, are 0. So
 * looks a process as well that is about to end, or of which we may not know.
 */
export function isInExec(text: string): boolean {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return parseStat(text)?.zombie === false && fields[46] === '0' && fields[48] === '0';
}
