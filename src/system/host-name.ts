/** The name of this machine. */
import { hostname } from 'node:os';

export function hostName(): string {
  return hostname();
}

/** The system it runs, as node names it: linux, darwin. */
export const platform: string = process.platform;
