/**
 * fleet/agent/: the end of a host that works for others: it takes wishes, does orders and tells of them. This file:
 * what all parts of it need.
 */
import type { HookProgram } from '../../claude/launch/settings.ts';
import type { Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import type { World } from '../../system/world.ts';
import type { FleetEngine } from '../engine.ts';
import type { FleetPaths, HostConfig } from '../fleet-files.ts';

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
  /** Tells this data root on this host from any other. */
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
  /** The disk is so full that what lies on it may be half of something. */
  readonly isDiskFull: () => boolean;
}

/** What does not come from the agent itself. */
export type OuterContext = Omit<AgentContext, 'noteLeases' | 'isDiskFull'>;
