/** The name of this machine. */
import { hostname } from 'node:os';

export function hostName(): string {
  return hostname();
}
