/** How much memory is left for new processes. */
import { readFileSync } from 'node:fs';
import { freemem } from 'node:os';

/** Linux counts caches that it would give back as available; elsewhere only what is unused is known. Bytes. */
export function freeMemoryBytes(): number {
  try {
    const match = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'));
    return match ? Number(match[1]) * 1024 : freemem();
  } catch {
    return freemem();
  }
}
