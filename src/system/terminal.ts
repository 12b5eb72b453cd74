/** The kind of a file descriptor, determined without loading `process.stdout`. */
import { fstatSync, readFileSync } from 'node:fs';

/** The device number of /dev/null and similar on Linux, to which programs without a terminal are often connected. */
const memoryDevices = 1;

/** Whether it can be a terminal: false when it certainly is none. */
export function mayBeTerminal(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isCharacterDevice() && !(process.platform === 'linux' && stats.rdev >> 8 === memoryDevices);
  } catch {
    return true;
  }
}

/** Whether output goes to a regular file. */
export function isRegularFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false;
  }
}

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
