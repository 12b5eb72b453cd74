/** `rehearsal-claude` (hidden): plays claude in a rehearsal where none is installed; bin/rehearsal-claude starts it. */
import type { Command } from '@commander-js/extra-typings';
import { onSignal } from '../../app/signals.ts';
import { StandIn } from '../../rehearsal/stand-in.ts';
import type { Context } from '../context.ts';

/** What a program ends with that SIGTERM ends. */
const terminated = 143;

export function define(command: Command, context: Context): void {
  command
    .description('Plays claude in a rehearsal where none is installed. Used by group run.')
    .argument('[words...]', 'what claude would be given, after "--"')
    .action((words) => playClaude(context, words));
}

async function playClaude({ world, cwd, env, stdout }: Context, args: readonly string[]): Promise<never> {
  const standIn = new StandIn({
    world,
    args,
    cwd,
    env,
    print: (line) => {
      stdout.line(line);
      return stdout.flush();
    },
  });
  const end = onSignal(world.clock, () => void standIn.stop(terminated));
  void hear((line) => standIn.take(line)).then(() => standIn.endInput());
  const code = await standIn.run();
  end();
  // The exit codes of claude are not ours.
  process.exit(code);
}

async function hear(take: (line: string) => unknown): Promise<void> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const part of Bun.stdin.stream()) {
    const lines = `${rest}${decoder.decode(part, { stream: true })}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
  }
}
