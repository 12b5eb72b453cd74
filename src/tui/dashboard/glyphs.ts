/** The signs of the dashboard, in Unicode and for terminals that have only ASCII. */

export interface Glyphs {
  /** The terminal has nothing else; what others wrote is spelt accordingly. */
  readonly isAscii: boolean;
  readonly running: string;
  readonly accepting: string;
  readonly stopping: string;
  readonly pending: string;
  readonly blocked: string;
  readonly paused: string;
  readonly completed: string;
  readonly failed: string;
  readonly marker: string;
  readonly mark: string;
  readonly sorted: string;
  readonly rule: string;
  readonly dot: string;
  readonly barSpent: string;
  readonly barReserved: string;
  readonly barFree: string;
  readonly lane: string;
  readonly branch: string;
  readonly lastBranch: string;
  readonly newline: string;
  readonly turning: readonly string[];
  readonly levels: readonly string[];
}

export const unicodeGlyphs: Glyphs = {
  isAscii: false,
  running: '●',
  accepting: '◐',
  stopping: '◌',
  pending: '○',
  blocked: '⊘',
  paused: '‖',
  completed: '✓',
  failed: '✗',
  marker: '›',
  mark: '◆',
  sorted: '▾',
  rule: '─',
  dot: '·',
  barSpent: '█',
  barReserved: '▒',
  barFree: '░',
  lane: '│',
  branch: '├',
  lastBranch: '└',
  newline: '↵',
  turning: [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'],
  levels: [...'▁▂▃▄▅▆▇█'],
};

export const asciiGlyphs: Glyphs = {
  isAscii: true,
  running: '*',
  accepting: '%',
  stopping: '~',
  pending: 'o',
  blocked: '-',
  paused: '=',
  completed: '+',
  failed: 'x',
  marker: '>',
  mark: '#',
  sorted: 'v',
  rule: '-',
  dot: '|',
  barSpent: '#',
  barReserved: '=',
  barFree: '.',
  lane: '|',
  branch: '|',
  lastBranch: '`',
  newline: '/',
  turning: [...'|/-\\'],
  levels: [...'_.:-=+*#'],
};
