/** fleet/agent/: the host's end of a fleet. This file: what all its parts need. */
import type { HookProgram } from '../../claude/launch/settings.ts';
import type { Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import type { World } from '../../system/world.ts';
import type { FleetPaths, HostConfig } from '../fleet-files.ts';
import type { FleetEngine } from '../redis.ts';

export interface ChosenProgram {
  readonly program: string;
  readonly version: string;
}

export interface AgentContext {
  readonly world: World;
  readonly engine: FleetEngine;
  readonly config: HostConfig;
  readonly root: string;
  readonly paths: FleetPaths;
  /** Distinguishes this data root on this host from any other. */
  readonly home: string;
  readonly git: Git;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  readonly bun: string;
  readonly hook: HookProgram;
  readonly claude: () => Promise<Result<ChosenProgram>>;
  readonly tell: (line: string) => void;
  readonly noteLeases: () => void;
  readonly isGuarded: () => boolean;
  /** The disk is so full that files on it may be incomplete. */
  readonly isDiskFull: () => boolean;
}

/** The part that the agent does not provide itself. */
export type OuterContext = Omit<AgentContext, 'noteLeases' | 'isDiskFull'>;
