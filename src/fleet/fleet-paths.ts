/** Where a fleet's files lie below the data root. Only names are made here. */
import { join } from 'node:path';

export interface FleetPaths {
  readonly folder: string;
  /** Of whoever runs groups, see fleet-files.ts. */
  readonly config: string;
  /** Of a machine that works for others, see fleet-files.ts. */
  readonly host: string;
  /** Folder with one file per login, `NAME.env`. */
  readonly logins: string;
  /** What the agent tells the guard: which attempts hold which leases, and when each was renewed. */
  readonly leases: string;
  /** When the guard last looked. */
  readonly guard: string;
  readonly guardLock: string;
  readonly agentLock: string;
  /** Folder with one folder per slot in use. */
  readonly slots: string;
  /** Folder of bare repositories. */
  readonly repositories: string;
  /** Holds `session-groups` as a data root does, for the sessions of others. */
  readonly work: string;
}

export function fleetPaths(root: string): FleetPaths {
  const folder = join(root, 'fleet');
  const at = (name: string): string => join(folder, name);
  return {
    folder,
    config: at('fleet.json'),
    host: at('host.json'),
    logins: at('logins'),
    leases: at('leases.json'),
    guard: at('guard.json'),
    guardLock: at('guard.lock'),
    agentLock: at('agent.lock'),
    slots: at('slots'),
    repositories: at('repositories'),
    work: at('work'),
  };
}
