/** Whether a file descriptor can be a terminal, asked without loading what stands behind `process.stdout`. */
import { fstatSync } from 'node:fs';

/** On Linux that of /dev/null and its like, to which programs without a terminal are often connected. */
const memoryDevices = 1;

/** False when it is certainly none. */
export function mayBeTerminal(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isCharacterDevice() && !(process.platform === 'linux' && stats.rdev >> 8 === memoryDevices);
  } catch {
    return true;
  }
}
