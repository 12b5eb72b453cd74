/** Checks whether the program accepts a command line, without executing it. */
import type { Command } from '@commander-js/extra-typings';
import { createContext } from '../../src/cli/context.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { checkoutRoot } from './cli.ts';

/** Throws commander's refusal; help is none. The command's action does not run. */
export async function parseArguments(argv: readonly string[]): Promise<void> {
  const program = await buildProgram(createContext(checkoutRoot), argv, '0');
  const { path } = argv.reduce<{ readonly path: Command; readonly done: boolean }>(
    ({ path, done }, word) => {
      const next = done ? undefined : path.commands.find((command) => command.name() === word);
      return next === undefined ? { path, done: true } : { path: next as Command, done };
    },
    { path: program as unknown as Command, done: false },
  );
  path.action(() => {});
  await program.parseAsync([...argv], { from: 'user' }).catch((error) => {
    if (error.code !== 'commander.helpDisplayed') throw error;
  });
}
