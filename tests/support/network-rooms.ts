/**
 * Machines that only the network joins: network namespaces at a bridge, so that a link can go down and a route can be
 * taken away. That takes root; names bear the pid of the test, so that the next one removes what a killed one left.
 */

import { existsSync } from 'node:fs';
import { kill } from './kill.ts';
import { orFailure } from './redis-server.ts';

function ip(...args: string[]): string {
  const ran = Bun.spawnSync(['ip', ...args], { stdin: 'ignore' });
  if (!ran.success) throw new Error(`ip ${args.join(' ')}: ${ran.stderr.toString()}`);
  return ran.stdout.toString();
}

const roomName = (pid: number, index: number): string => `cca-test-${pid}-${index}`;
const bridgeName = (pid: number): string => `ccab${pid}`;

/** Where it is to be had by root, it must be. */
export const hasRooms = process.getuid?.() === 0 && orFailure('ip netns', canMakeRooms());

function canMakeRooms(): boolean {
  if (Bun.which('ip') === null) return false;
  const name = roomName(process.pid, 0);
  const isMade = Bun.spawnSync(['ip', 'netns', 'add', name]).success;
  if (isMade) ip('netns', 'delete', name);
  return isMade;
}

/** What tests made that live no more. */
function sweep(isOver: (pid: number) => boolean): void {
  for (const [name, pid] of ip('netns', 'list').matchAll(/^cca-test-(\d+)-\d+/gm)) {
    if (!isOver(Number(pid))) continue;
    for (const inside of ip('netns', 'pids', name).split('\n')) if (inside !== '') kill(Number(inside));
    ip('netns', 'delete', name);
  }
  // The bridge, and the cables that hang on it.
  for (const [, name = '', pid] of ip('-o', 'link', 'show').matchAll(/^\d+: (ccab(\d+)(?:o\d+)?)[@:]/gm)) {
    // A cable goes by itself when its other end is gone, which may be just now.
    if (isOver(Number(pid))) Bun.spawnSync(['ip', 'link', 'delete', name], { stderr: 'ignore' });
  }
}

export interface Room {
  /** Starts a command there. */
  readonly within: readonly string[];
  /** Its cable is pulled. */
  unplug(): void;
  /** What it sends to that address comes nowhere. */
  lose(address: string): void;
  find(address: string): void;
}

export interface Rooms {
  /** This machine, as those in the rooms see it: two, of which one can be lost. */
  readonly addresses: readonly [string, string];
  readonly rooms: readonly Room[];
  close(): void;
}

export function openRooms(count: number): Rooms {
  const { pid } = process;
  sweep((other) => other === pid || !existsSync(`/proc/${other}`));
  const network = `10.${64 + (pid % 128)}.${(pid >> 7) % 256}`;
  const bridge = bridgeName(pid);
  ip('link', 'add', bridge, 'type', 'bridge');
  for (const last of [1, 2]) ip('address', 'add', `${network}.${last}/24`, 'dev', bridge);
  ip('link', 'set', bridge, 'up');
  const rooms = Array.from({ length: count }, (_, index) => openRoom(roomName(pid, index + 1), bridge, network, index));
  return {
    addresses: [`${network}.1`, `${network}.2`],
    rooms,
    close: () => sweep((other) => other === pid),
  };
}

function openRoom(name: string, bridge: string, network: string, index: number): Room {
  const [outer, inner] = [`${bridge}o${index}`, `${bridge}i${index}`];
  ip('netns', 'add', name);
  ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', name);
  ip('link', 'set', outer, 'master', bridge, 'up');
  ip('-n', name, 'link', 'set', 'lo', 'up');
  ip('-n', name, 'address', 'add', `${network}.${10 + index}/24`, 'dev', inner);
  ip('-n', name, 'link', 'set', inner, 'up');
  return {
    within: ['ip', 'netns', 'exec', name],
    unplug: () => void ip('link', 'set', outer, 'down'),
    lose: (address) => void ip('-n', name, 'route', 'add', 'blackhole', `${address}/32`),
    find: (address) => void ip('-n', name, 'route', 'delete', 'blackhole', `${address}/32`),
  };
}
