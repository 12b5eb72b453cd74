/**
 * A model of the claude process as `claude -p --input-format stream-json` behaves: it reads its FIFO, calls the model,
 * runs tools, prints lines into the transcript, keeps a conversation, answers control requests and ends in many ways.
 */
import type { SignalName, SpawnOptions } from '../../../src/system/world.ts';
import type { ClaudeBook } from './books.ts';
import {
  costStateLine,
  firstLines,
  firstUsd,
  initLine,
  type ModelCall,
  messageLine,
  nearLimitLine,
  type ResultKind,
  readTotal,
  type Total,
  toolResultLine,
  troubleLines,
  virtualAnswerLine,
  virtualIdleLine,
  virtualResultLine,
  wholeUsd,
} from './claude-lines.ts';
import { ClaudeOutput } from './claude-output.ts';
import type { Behaviour } from './scenario.ts';
import type { Seeded } from './seeded.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import { onlyHost, type VirtualProcess } from './virtual-processes.ts';

interface InputLine {
  readonly type: string;
  readonly request_id?: string;
  readonly request?: { readonly subtype: string };
  readonly response?: { readonly request_id?: string; readonly response?: { readonly behavior?: string } };
}

/** CLAUDE_CODE_EXIT_AFTER_STOP_DELAY of our workers. */
const idleExitMs = 60_000;

export class VirtualClaude {
  readonly #machine: VirtualMachine;
  readonly #book: ClaudeBook;
  readonly #process: VirtualProcess;
  readonly #options: SpawnOptions;
  readonly #luck: Seeded;
  readonly #output: ClaudeOutput;
  readonly #input: string[] = [];
  readonly #calls: ModelCall[] = [];
  #behaviour: Behaviour | null = null;
  #isReady = false;
  /** Raised to cancel planned actions: an interrupt, a signal. */
  #turn = 0;
  #totalUsd = 0;
  /** The cost of earlier processes of the conversation, if claude's totals continue from it. */
  #base: Total = { usd: 0, calls: [] };
  #tool: VirtualProcess | null = null;
  #isIdle = false;
  #isDying = false;
  /** The open request to the user. */
  #asked: { readonly requestId: string; readonly answered: (isAllowed: boolean) => void } | null = null;
  #hasAsked = false;

  constructor(machine: VirtualMachine, book: ClaudeBook, options: SpawnOptions, luck: Seeded) {
    this.#machine = machine;
    this.#book = book;
    this.#process = book.process;
    this.#options = options;
    this.#luck = luck;
    this.#output = new ClaudeOutput(machine, book, options, luck);
    this.#process.onSignal = (signal) => this.#onSignal(signal);
    this.#process.onDeath = () => this.#onDeath();
    this.#later(luck.delay(200, 3_000), 'is up', () => this.#boot());
  }

  /** A line from the FIFO. */
  take(line: string): void {
    this.#input.push(line);
    if (this.#isReady) this.#later(this.#luck.delay(10, 300), 'reads stdin', () => this.#read());
  }

  #later(delayMs: number, label: string, action: () => void): void {
    this.#machine.timeline.schedule(delayMs, label, this.#process, action);
  }

  /** Like `#later`, unless the turn is over by then. */
  #next(delayMs: number, label: string, action: () => void): void {
    const turn = this.#turn;
    this.#later(delayMs, label, () => {
      if (turn === this.#turn) action();
    });
  }

  #boot(): void {
    if (this.#isDying) return;
    const { disk } = this.#machine;
    const kept = disk.file(this.#book.conversation);
    if (this.#book.resumes && kept?.read(0, 1)[0] !== '{'.charCodeAt(0)) {
      this.#print(virtualResultLine('no-conversation', this.#base, 0, null));
      this.#exit(1);
    } else if (!this.#book.resumes && kept !== null) {
      this.#exit(1);
    } else {
      this.#isReady = true;
      if (this.#machine.hasLastingTotals) this.#base = this.#keptTotal() ?? this.#base;
      for (const line of firstLines(this.#book.sessionId)) this.#print(line);
      this.#book.firstBytes = this.#book.printedBytes;
      this.#read();
    }
  }

  /** What the last clean exit wrote to the conversation. */
  #keptTotal(): Total | undefined {
    const bytes = this.#machine.disk.file(this.#book.conversation)?.read(0, Number.MAX_SAFE_INTEGER);
    return readTotal(new TextDecoder().decode(bytes));
  }

  /** Its reported cost. */
  get #total(): Total {
    return { usd: this.#base.usd + this.#totalUsd, calls: [...this.#base.calls, ...this.#calls] };
  }

  #read(): void {
    for (const line of this.#input.splice(0)) {
      const message = JSON.parse(line) as InputLine;
      if (message.type === 'control_response') this.#hear(message.response);
      else if (message.type === 'user') {
        if (line.includes('(item ')) this.#keep({ ...message, ...this.#stamp() });
        this.#machine.checks.told.reads(this.#book, line, !this.#book.begun);
        this.#begin();
      } else if (message.request?.subtype === 'get_usage') this.#answerUsage(message.request_id ?? '');
      else if (message.request?.subtype === 'interrupt') this.#onInterrupt(message.request_id ?? '');
    }
  }

  #begin(): void {
    if (this.#behaviour !== null || this.#isDying) return;
    this.#behaviour = this.#machine.nextBehaviour(this.#book);
    this.#book.begun = true;
    this.#machine.checks.began(this.#book);
    this.#print(initLine(this.#options.cwd));
    if (this.#behaviour.nearLimit) this.#print(nearLimitLine(Math.floor(this.#machine.timeline.wall() / 1_000) + 30));
    // Lines before the first request are in the file before that request is paid for.
    this.#output.inPieces = this.#behaviour.pieces;
    if (this.#behaviour.ending === 'not-sent') this.#next(20, 'refuses the prompt', () => this.#conclude('not-sent'));
    else this.#think(0);
  }

  #think(index: number): void {
    const { slowness } = this.#behaviour as Behaviour;
    this.#next(slowness * this.#luck.delay(700, 6_000), 'hears from the model', () => this.#speak(index));
  }

  #speak(index: number): void {
    const { messages, tools, ending } = this.#behaviour as Behaviour;
    this.#machine.checks.asking.speaks(this.#book);
    if (this.#machine.isLimited || ending === 'unreachable') {
      this.#conclude(this.#machine.isLimited ? 'limit' : 'unreachable');
      return;
    }
    const call: ModelCall = { input: this.#luck.int(200, 3_000), output: this.#luck.int(1, 600) };
    const isLast = index + 1 >= messages;
    const usesTool = ending === 'denied' || ending === 'long-tool' || (tools && !isLast);
    const toolId = usesTool ? `tool-${this.#process.identity.pid}-${index}` : null;
    const { pid, host } = this.#process.identity;
    const id = host === onlyHost ? `m-${pid}-${index}` : `m-${host}-${pid}-${index}`;
    this.#book.charge(firstUsd(call));
    this.#keep({ type: 'assistant', message: { id }, ...this.#stamp() });
    this.#print(messageLine(id, call, toolId), () => {
      this.#book.begin(firstUsd(call));
      this.#book.answeredWallMs = this.#machine.timeline.wall();
      this.#book.answeredMs = this.#machine.timeline.nowMs;
      if (toolId !== null) this.#book.toolSinceMs = this.#machine.timeline.nowMs;
    });
    this.#next(this.#luck.delay(300, 2_000), 'ends a message', () => {
      this.#book.charge(wholeUsd(call) - firstUsd(call));
      this.#keep({ ...messageLine(id, call, toolId, call.output), ...this.#stamp() });
      this.#calls.push(call);
      this.#totalUsd += wholeUsd(call);
      const { capUsd } = this.#book;
      if (capUsd !== undefined && this.#totalUsd >= capUsd) this.#conclude('budget');
      else if (toolId !== null) this.#callTool(toolId, isLast, index);
      else if (isLast) this.#finish();
      else this.#think(index + 1);
    });
  }

  #callTool(toolId: string, isLast: boolean, index: number): void {
    const { ending, asks = false } = this.#behaviour as Behaviour;
    if (!asks || this.#hasAsked) this.#runTool(toolId, isLast, index, ending === 'denied');
    else this.#ask(toolId, isLast, index);
  }

  #ask(toolId: string, isLast: boolean, index: number): void {
    this.#hasAsked = true;
    const requestId = `ask-${this.#book.attemptId}`;
    const answered = (isAllowed: boolean) => this.#runTool(toolId, isLast, index, !isAllowed);
    this.#asked = { requestId, answered };
    const call = { tool_name: 'Bash', input: { command: 'deploy' }, tool_use_id: toolId };
    this.#print({ type: 'control_request', request_id: requestId, request: { subtype: 'can_use_tool', ...call } });
  }

  /** A second answer, or one to a closed request, is ignored. */
  #hear({ request_id, response }: InputLine['response'] = {}): void {
    const asked = this.#asked;
    if (asked === null || asked.requestId !== request_id || this.#isDying) return;
    this.#asked = null;
    this.#next(this.#luck.delay(5, 100), 'goes on', () => asked.answered(response?.behavior === 'allow'));
  }

  #runTool(toolId: string, isLast: boolean, index: number, isDenied: boolean): void {
    const { ending } = this.#behaviour as Behaviour;
    if (!isDenied) this.#tool = this.#machine.startTool(this.#process, (this.#behaviour as Behaviour).tool);
    const toolMs = isLast && ending === 'long-tool' ? this.#luck.int(8_000, 25_000) : this.#luck.delay(800, 5_000);
    this.#next(toolMs, 'gets a tool’s result', () => {
      this.#endTool();
      this.#machine.worked(this.#book, this.#options.cwd);
      const result = { type: 'tool_result', tool_use_id: toolId };
      if (this.#hasAsked) this.#keep({ type: 'user', message: { content: [result] }, ...this.#stamp() });
      this.#print(toolResultLine(toolId, isDenied), () => {
        this.#book.toolSinceMs = null;
      });
      if (isLast) this.#finish(isDenied ? toolId : null);
      else this.#think(index + 1);
    });
  }

  #finish(deniedToolId: string | null = null): void {
    const { ending } = this.#behaviour as Behaviour;
    switch (ending) {
      case 'hangs':
        this.#book.hangs = true;
        return;
      case 'stalls':
        // Waits for an answer of the API that never comes; its runner must notice.
        return;
      case 'long-tool':
        this.#conclude('success');
        return;
      case 'limit':
        this.#machine.reachLimit(this.#luck.int(4_000, 16_000));
        this.#conclude('limit');
        return;
      case 'killed':
        this.#machine.table.end(this.#process, { kind: 'signalled', signal: 'SIGKILL' });
        return;
      case 'silent':
      case 'silent-code':
        this.#exit(ending === 'silent' ? 0 : 3);
        return;
      case 'exit-code':
        this.#book.contradicted = true;
        this.#conclude('success');
        this.#exit(1);
        return;
      default:
        this.#conclude(ending, deniedToolId);
    }
  }

  #conclude(kind: ResultKind, deniedToolId: string | null = null): void {
    const resetsAtS = this.#machine.limitResetsAtS;
    for (const line of troubleLines(kind, resetsAtS)) {
      this.#print(line, () => {
        if (kind === 'limit') this.#book.resetsAtWallMs = resetsAtS * 1_000;
      });
    }
    const isSuccess = kind === 'success';
    this.#print(virtualResultLine(kind, this.#total, this.#calls.length, deniedToolId), (end) => {
      this.#book.report(end, this.#totalUsd);
      this.#book.hasConcluded = true;
      this.#book.toolSinceMs = null;
      if (isSuccess) this.#book.successEnds.push(end);
    });
    this.#print(virtualIdleLine);
    this.#isIdle = true;
    if (kind === 'budget' || (kind !== 'success' && this.#luck.chance(0.5))) this.#exit(1);
    else this.#next(idleExitMs, 'has idled long enough', () => this.#exit(0));
  }

  #answerUsage(requestId: string): void {
    if (this.#isDying || this.#behaviour?.interrupt === 'ignored') return;
    const usd = this.#totalUsd;
    this.#say(virtualAnswerLine(requestId, this.#total), (end) => this.#book.report(end, usd));
  }

  #onInterrupt(requestId: string): void {
    const how = this.#behaviour?.interrupt ?? 'obeyed';
    if (how === 'ignored' || this.#isDying) return;
    this.#later(how === 'slow' ? this.#luck.int(500, 7_000) : this.#luck.int(1, 40), 'obeys an interrupt', () => {
      if (this.#isDying) return;
      this.#say(virtualAnswerLine(requestId));
      if (this.#isIdle || this.#behaviour === null) return;
      if (this.#asked !== null) this.#print({ type: 'control_cancel_request', request_id: this.#asked.requestId });
      this.#asked = null;
      this.#turn += 1;
      this.#endTool();
      this.#conclude('interrupted');
    });
  }

  #onSignal(signal: SignalName): void {
    if (signal !== 'SIGTERM') return;
    if (this.#asked !== null) this.#machine.coverage.note('ended while it asks');
    const how = this.#behaviour?.term ?? 'obeyed';
    if (how === 'ignored' || this.#isDying) return;
    this.#turn += 1;
    if (how === 'success-while-dying' && !this.#isIdle && this.#behaviour !== null) {
      this.#process.dyingSuccessFor = this.#process.toldToEndBy;
      this.#conclude('success');
    }
    this.#isDying = true;
    this.#turn += 1;
    const delayMs = how === 'slow' ? this.#luck.int(1_000, 9_500) : this.#luck.int(5, 200);
    this.#later(delayMs, 'ends after SIGTERM', () => this.#exit(143));
  }

  /** Exits by itself once all its output is written. */
  #exit(code: number): void {
    this.#isDying = true;
    this.#turn += 1;
    this.#output.whenWritten(() => {
      this.#later(this.#luck.delay(30, 500), `exits with ${code}`, () => {
        if (this.#machine.hasLastingTotals) this.#keep(costStateLine(this.#total));
        this.#machine.table.end(this.#process, { kind: 'exited', code });
      });
    });
  }

  #onDeath(): void {
    this.#machine.closeFifo(this.#options.stdinFifo ?? '', this.#process);
    const { status } = this.#process;
    if (status?.kind === 'signalled' && this.#behaviour?.forgets) this.#machine.forget(this.#book.conversation);
  }

  #endTool(): void {
    const tool = this.#tool;
    this.#tool = null;
    if (tool?.alive && this.#behaviour?.tool === 'tame') this.#machine.table.end(tool, { kind: 'exited', code: 0 });
  }

  #stamp(): object {
    return { timestamp: new Date(this.#machine.timeline.wall()).toISOString() };
  }

  #keep(line: object): void {
    this.#machine.appendQuietly(this.#book.conversation, Buffer.from(`${JSON.stringify(line)}\n`));
  }

  #print(line: object, onWritten: (end: number) => void = () => {}): void {
    this.#say(line, (end) => {
      this.#book.spokeMs = this.#machine.timeline.nowMs;
      onWritten(end);
    });
  }

  /** Answers to control requests are no progress. */
  #say(line: object, onWritten: (end: number) => void = () => {}): void {
    this.#output.print({ ...line, session_id: this.#book.claudeSessionId }, onWritten);
  }
}
