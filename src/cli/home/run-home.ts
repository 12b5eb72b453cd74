/** From the home screen to the dashboards of groups and back, until the person leaves. */

import { createNewGroup } from '../../app/create/new-group.ts';
import { readWorkflow } from '../../app/create/workflow-group.ts';
import { referenceTo } from '../../app/groups.ts';
import { whileBusy } from '../../app/live-runner.ts';
import { loadReferredGroup } from '../../app/resolve.ts';
import { startDetached } from '../../app/run/detach.ts';
import { endOf } from '../../app/signals.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, type Failure, ok, type Result } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { delay } from '../../system/clock.ts';
import type { Notice } from '../../tui/dashboard/view.ts';
import type { HomeCommand } from '../../tui/home/keys.ts';
import { deleteGroups } from '../commands/group/remove.ts';
import { attempt, type Context, need, refuse, type Work } from '../context.ts';
import { watchedOnScreen } from '../dashboard/watch-display.ts';
import { exitCode } from '../exit-code.ts';
import { createOutput } from '../output.ts';
import { firstMemory, type HomeMemory, showHome } from './home.ts';

const signalMs = 2_000;

export async function runHome(context: Context): Promise<Work> {
  const root = need(context.root());
  let memory: HomeMemory = firstMemory;
  for (;;) {
    const shown = await showHome(context, root, memory);
    const { end } = shown;
    if (end.by === 'trouble') throw end.error;
    if (end.by === 'signal') {
      // As if it had not been caught. It arrives in a moment; should it be blocked, the program ends all the same.
      endOf(end.signal);
      await delay(context.world.clock, signalMs);
      return exitCode.failed;
    }
    if (end.command.do === 'quit') return;
    const came = await grant(context, root, end.command);
    if (came.signalled) return exitCode.failed;
    memory = {
      ui: came.selected === undefined ? shown.memory.ui : { ...shown.memory.ui, selected: came.selected },
      ...defined({ notice: came.notice }),
    };
  }
}

interface Came {
  readonly notice?: Notice;
  readonly selected?: GroupId;
  readonly signalled?: true;
}

async function grant(
  context: Context,
  root: string,
  command: Exclude<HomeCommand, { do: 'quit' | 'redraw' | 'suspend' | 'tell' }>,
): Promise<Came> {
  switch (command.do) {
    case 'open':
      return open(context, command.id);
    case 'delete':
      return remove(context, command.id);
    case 'start': {
      const started = await start(context, root, command.reference, command.rehearse);
      return started.ok ? open(context, started.value) : refused(started.failure);
    }
  }
}

function refused(failure: Failure): Came {
  return { notice: { text: describeFailure(failure).replaceAll(/\s+/g, ' '), tone: 'bad' } };
}

async function open(context: Context, id: GroupId): Promise<Came> {
  const group = loadReferredGroup(context, id);
  if (!group.ok) return refused(group.failure);
  const end = await watchedOnScreen(context, group.value);
  switch (end.by) {
    case 'user':
      return { selected: id };
    case 'loss':
      return refused(end.failure);
    case 'trouble':
      throw end.error;
    case 'signal':
      endOf(end.signal);
      await delay(context.world.clock, signalMs);
      return { signalled: true };
  }
}

async function remove(context: Context, id: GroupId): Promise<Came> {
  const { quiet, said } = listening(context);
  const deleted = await attempt(() => deleteGroups(quiet, [id], { yes: true }, () => ({})));
  if (!deleted.ok) return refused(deleted.failure);
  return { notice: { text: said().at(-1) ?? 'Deleted.', tone: 'good' } };
}

async function start(context: Context, root: string, reference: string, rehearse: boolean): Promise<Result<GroupId>> {
  const { quiet } = listening(context);
  const described = need(await readWorkflow(quiet, reference, []));
  const created = need(createNewGroup(quiet, root, described));
  const { id } = created.group;
  const group = referenceTo(root, id);
  const options = { config: {}, retryFailed: false, rehearse: rehearse ? true : undefined } as const;
  const started = need(await whileBusy(context, 'Starting the runner', () => startDetached(quiet, group, options)));
  if (started.kind === 'running') return ok(id);
  const message = started.said.join(' ');
  return refuse('usage', message, '');
}

/** What would be printed is kept, for the screen is not there to print on. */
function listening(context: Context) {
  const parts: string[] = [];
  const stream = {
    on: () => {},
    write(data: string | Uint8Array, done: () => void) {
      parts.push(typeof data === 'string' ? data : new TextDecoder().decode(data));
      done();
    },
  };
  const output = createOutput(stream, context.env);
  const properties = { stdout: { value: output }, stderr: { value: output }, notes: { value: output } };
  const quiet = Object.create(context, properties) as Context;
  const said = (): string[] =>
    parts
      .join('')
      .split('\n')
      .filter((line) => line.trim() !== '');
  return { quiet, said };
}
