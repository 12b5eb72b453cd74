/** Signals that were ignored when this program was started; what `nohup` asks for is to stay so. */
import { readFileSync } from 'node:fs';

/** True when SIGHUP is ignored. Known on Linux only; elsewhere false. */
export function ignoresHangup(): boolean {
  try {
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
    // SIGHUP is signal 1, the lowest bit.
    return (BigInt(`0x${ignored}`) & 1n) === 1n;
  } catch {
    return false;
  }
}
