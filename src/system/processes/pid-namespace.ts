/** Which pids this process sees: those of its namespace (pid_namespaces(7)). */
import { readlinkSync } from 'node:fs';

/** Unique within a boot of the machine; undefined where the system has no such thing. */
export function pidNamespace(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return undefined;
  }
}
