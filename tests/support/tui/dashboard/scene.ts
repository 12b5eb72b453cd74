/** A group in the middle of its run, with one session of every kind, for tests of what the dashboard shows. */
import { renderToString } from 'ink';
import type { EventBody, GroupEvent } from '../../../../src/core/event.ts';
import type { SessionDefinition } from '../../../../src/core/group.ts';
import { loggedContext } from '../../../../src/core/plan/decision.ts';
import { verdictsOf } from '../../../../src/core/plan/verdicts.ts';
import type { LiveSession } from '../../../../src/core/progress.ts';
import { reduce } from '../../../../src/core/reduce.ts';
import { type GroupState, initialState } from '../../../../src/core/state.ts';
import { screenNode } from '../../../../src/tui/app.ts';
import { type AttemptNotes, noteAttempt } from '../../../../src/tui/dashboard/attempts.ts';
import { asciiGlyphs, plainRow, type Row, unicodeGlyphs } from '../../../../src/tui/dashboard/cells.ts';
import { type Frame, frameOf } from '../../../../src/tui/dashboard/frame.ts';
import { firstUi, type Ui } from '../../../../src/tui/dashboard/ui.ts';
import type { View } from '../../../../src/tui/dashboard/view.ts';
import { type Layout, paintLayout } from '../../../../src/tui/layout.ts';
import {
  creation,
  sampleAttempt,
  sampleAttemptId,
  sampleGroupId,
  sampleUsage,
  session,
  started,
} from '../../view/sample-run.ts';

export const startMs = Date.parse('2026-01-04T14:30:22.000Z');

export function sessionId(number: number): string {
  const digits = String(number).padStart(3, '0');
  return `${digits}-${digits.repeat(3).slice(0, 8)}-1111-4111-8111-111111111111`;
}

/** Reduces events that are one second apart. */
export function fold(bodies: readonly EventBody[]): { readonly state: GroupState; readonly notes: AttemptNotes } {
  let state: GroupState | undefined;
  const notes: AttemptNotes = new Map();
  for (const [index, body] of bodies.entries()) {
    const at = new Date(startMs + index * 1000).toISOString();
    const event: GroupEvent = { seq: index + 1, at, groupId: sampleGroupId, ...body };
    state = state === undefined ? initialState(event) : reduce(state, event);
    noteAttempt(notes, event);
  }
  if (state === undefined) throw new Error('no events');
  return { state, notes };
}

function define(number: number, name: string, after: readonly number[], more: Partial<SessionDefinition> = {}) {
  return session(sessionId(number), { name, dependsOn: after.map(sessionId), ...more });
}

const sessions = [
  define(1, 'schema', [], { projectPath: '/projects/database' }),
  define(2, 'api', [1], { projectPath: '/projects/api', accept: 'npm test' }),
  define(3, 'web', [2], { projectPath: '/projects/web' }),
  define(4, 'mobile', [2], { projectPath: '/projects/mobile' }),
  define(5, 'release notes', [3, 4], { projectPath: '/projects/docs' }),
  define(6, 'worker', [1], { projectPath: '/projects/worker' }),
  define(7, 'load test', [6], { projectPath: '/projects/bench' }),
  define(8, 'billing', [], { projectPath: '/projects/billing' }),
  define(9, 'audit', [], { projectPath: '/projects/audit' }),
];

export const sceneLimit = '2026-01-04T15:30:22.000Z';

/** One completed, two running, one accepting, one failed, one blocked, one paused, two waiting. */
export const sceneEvents: readonly EventBody[] = [
  ...creation({ maxBudgetUsd: 10 }, sessions),
  started,
  ...sampleAttempt(sessionId(1)),
  {
    type: 'session_completed',
    sessionId: sessionId(1),
    attemptId: sampleAttemptId(sessionId(1)),
    result: '## Done\n\nThe **tables** are there.\n\n- see `migrations/`\n- and [the notes](notes.md)',
    work: { commit: 'c'.repeat(40), files: 4, insertions: 120, deletions: 7 },
    usage: sampleUsage(1.25, 120_000, 9_500, 65_000),
  },
  ...sampleAttempt(sessionId(2)),
  ...sampleAttempt(sessionId(6)),
  {
    type: 'session_failed',
    sessionId: sessionId(6),
    attemptId: sampleAttemptId(sessionId(6)),
    reason: 'no-result',
    message: 'claude ended without a result.',
    next: 'Look at its log.',
    usage: sampleUsage(0.6, 90_000, 400, 8000),
  },
  ...sampleAttempt(sessionId(8)),
  {
    type: 'session_paused',
    sessionId: sessionId(8),
    attemptId: sampleAttemptId(sessionId(8)),
    reason: 'user',
    message: 'Paused by the user.',
    usage: sampleUsage(0.11, 9_000, 100, 4000),
  },
  ...sampleAttempt(sessionId(9)),
  {
    type: 'session_accepting',
    sessionId: sessionId(9),
    attemptId: sampleAttemptId(sessionId(9)),
    result: 'Audited.',
    usage: sampleUsage(0.2, 1000, 100, 4000),
  },
  { type: 'limit_reached', resetsAt: sceneLimit },
];

export const sceneLive: ReadonlyMap<string, LiveSession> = new Map([
  [
    sessionId(2),
    {
      currentTool: 'Bash npm run test -- --watch=false packages/api/src/session',
      lastText: 'The **login endpoint** works; now I write the test for an `expired` token.',
      usage: sampleUsage(0.42, 50_000, 2_000, 9_000),
    },
  ],
]);

export interface SceneOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly ui?: Partial<Ui>;
  readonly view?: Partial<View>;
  readonly ascii?: true;
}

/** The scene as a frame, by default of the list alone. */
export function frame({
  columns = 80,
  rows = 24,
  ui,
  view,
  ascii,
}: SceneOptions = {}): Frame & { readonly isAscii: boolean } {
  const { state, notes } = fold(sceneEvents);
  const nowMs = startMs + 95_000;
  const seen = view?.state ?? state;
  const isAbandoned = view?.runner === 'none';
  const verdicts = verdictsOf(seen, { ...loggedContext(seen, view?.nowMs ?? nowMs), isAbandoned });
  const shown: View = { state, live: sceneLive, nowMs, runner: 'elsewhere', verdicts, ...view };
  const selected = ui?.selected ?? sessionId(1);
  const material = {
    sessionId: selected,
    log: [
      { lead: '', text: '\u001b[2m-- claude 2.1.332 opus\u001b[22m' },
      { lead: '• ', text: 'I read the files, and what I found is long enough that it needs more than one row here.' },
      { lead: '\u001b[36m> \u001b[39m', text: 'Bash npm test' },
    ],
    attempts: notes.get(selected) ?? [],
  };
  const glyphs = ascii ? asciiGlyphs : unicodeGlyphs;
  const chosen = { ...firstUi, home: ui?.selected ?? null, pane: 'none', ...ui } as const;
  const isAscii = ascii === true;
  return { ...frameOf({ material, ...shown }, chosen, { columns, rows, glyphs }), isAscii };
}

/** The frame as ink draws it, without styles and trailing blanks. */
export function screenOf(shown: Layout & { readonly isAscii?: boolean }): string {
  const painted = paintLayout(shown, 'plain', shown.isAscii ? asciiGlyphs : unicodeGlyphs);
  const lines = Bun.stripANSI(renderToString(screenNode(painted), { columns: 400 })).split('\n');
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}

/** What stands within the frames, without them. */
export function layoutText({ bands }: Layout): string {
  const lines = bands.flatMap((panes) => {
    const parts = panes.map(({ title, end, rows, isFramed }) => [
      ...(isFramed ? [{ cells: [...title, { text: '   ' }, ...end] }] : []),
      ...rows,
    ]);
    const [first = []] = parts;
    return first.map((_, nth) => parts.map((rows) => plainRow(rows[nth] as Row)).join('│'));
  });
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}

/** All rows within the frames. */
export function rowsOf({ bands }: Layout): readonly Row[] {
  return bands.flat().flatMap(({ rows }) => rows);
}

export function isSelected({ cells }: Row): boolean {
  return cells.some((cell) => cell.isSelected);
}
