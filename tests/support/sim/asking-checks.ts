/** Items of sessions, checked against the conversation: one answer each, and no cost while they wait. */
import { openItems } from '../../../src/core/item.ts';
import type { ClaudeBook } from './books.ts';
import { invariants } from './checks.ts';
import { keepsWords } from './scenario-of-seed.ts';
import type { VirtualMachine } from './virtual-machine.ts';

export class AskingChecks {
  readonly #machine: VirtualMachine;
  readonly #isExact: boolean;

  constructor(machine: VirtualMachine) {
    this.#machine = machine;
    this.#isExact = keepsWords(machine.scenario);
  }

  /** A request sends the conversation to the model. */
  speaks({ sessionId, conversation, process }: ClaudeBook): void {
    const { log, coverage, disk } = this.#machine;
    const record = log.state?.sessions.get(sessionId);
    const [open] = openItems(record ?? {});
    if (open !== undefined && record?.state.status !== 'running')
      this.#machine.violate(invariants.rests, `${process.name} works while item ${open.id} of ${sessionId} is open`);
    const bytes = disk.file(conversation)?.read(0, Number.MAX_SAFE_INTEGER);
    const lines = new TextDecoder().decode(bytes).split('\n');
    for (const { id, toolUseId, state } of record?.items ?? []) {
      if (state !== 'answered') continue;
      const told = lines.filter(
        (line) => line.includes(`(item ${id})`) || line.includes(`"tool_use_id":"${toolUseId}"`),
      );
      coverage.note(`answers told ${told.length}`);
      const isMissing = told.length === 0 && this.#isExact && record?.lastFailure === undefined;
      if (told.length > 1 || isMissing)
        this.#machine.violate(invariants.said, `the answer to ${id} of ${sessionId} is told ${told.length} times`);
    }
  }
}
