/** Work of sessions made to survive a power cut. */
import { together } from './together.ts';

const timeoutMs = 10_000;

/**
 * Neither git nor the tools of a session wait for the disk, and what is completed is never done again. Where there is
 * no such program, or it takes too long, the system writes it by itself some seconds later.
 */
export const syncDisks = together(
  async ({ world, env }, repository, paths: readonly string[]): Promise<undefined[]> => {
    await world.processes.run({
      program: 'sync',
      args: ['-f', repository, ...paths],
      cwd: repository,
      env: { PATH: env.PATH ?? '', LC_ALL: 'C' },
      timeoutMs,
    });
    return paths.map(() => undefined);
  },
);
