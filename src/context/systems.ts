/** The context systems by name. */
import { cpm } from './cpm/hooks.ts';
import { faber } from './faber/hooks.ts';
import { handover } from './handover/hooks.ts';
import type { ContextSystem } from './hook-call.ts';

export const contextSystems: readonly ContextSystem[] = [cpm, faber, handover];
