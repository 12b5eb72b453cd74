/** The name of this machine. */
import { hostname } from 'node:os';

export function hostName(): string {
  return hostname();
}

export function isPortFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '0.0.0.0', port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

export const platform: string = process.platform;

// macOS keeps logins in a keychain, which belongs to the user whatever HOME is.

export const hasKeychain = process.platform === 'darwin';
