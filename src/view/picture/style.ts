/** The colours of pictures and pages, light and dark, and how the parts of a picture look. */

const light: Readonly<Record<string, string>> = {
  bg: '#ffffff',
  fg: '#1f2328',
  dim: '#59636e',
  line: '#d1d9e0',
  card: '#f6f8fa',
  completed: '#1a7f37',
  running: '#0969da',
  failed: '#cf222e',
  paused: '#9a6700',
  pending: '#818b98',
  blocked: '#a475f9',
  'wait-slot': '#aab4be',
  'wait-cache': '#8fc7ea',
  'wait-dependency': '#d8dee4',
  'wait-blocked': '#c297ff',
  'wait-limit': '#e85aad',
  'wait-budget': '#e16f24',
  'wait-backoff': '#d4a72c',
  'wait-paused': '#7d93ad',
  'wait-errors': '#fa8e8e',
  accepting: '#1b7c83',
  'series-1': '#0969da',
  'series-2': '#bc4c00',
  'series-3': '#1a7f37',
  'series-4': '#8250df',
  'series-5': '#bf3989',
  'series-6': '#818b98',
};

const dark: Readonly<Record<string, string>> = {
  bg: '#0d1117',
  fg: '#e6edf3',
  dim: '#9198a1',
  line: '#3d444d',
  card: '#151b23',
  completed: '#3fb950',
  running: '#58a6ff',
  failed: '#f85149',
  paused: '#d29922',
  pending: '#848d97',
  blocked: '#a475f9',
  'wait-slot': '#656c76',
  'wait-cache': '#2f6f96',
  'wait-dependency': '#373e47',
  'wait-blocked': '#7947c7',
  'wait-limit': '#db61a2',
  'wait-budget': '#db6d28',
  'wait-backoff': '#bb8009',
  'wait-paused': '#5b728e',
  'wait-errors': '#a5403d',
  accepting: '#39c5cf',
  'series-1': '#58a6ff',
  'series-2': '#f0883e',
  'series-3': '#56d364',
  'series-4': '#bc8cff',
  'series-5': '#f778ba',
  'series-6': '#848d97',
};

function variables(colours: Readonly<Record<string, string>>): string {
  return Object.entries(colours)
    .map(([name, colour]) => `--${name}:${colour}`)
    .join(';');
}

/** The custom properties for both schemes. */
export const themeStyle = [
  `:root{color-scheme:light dark;${variables(light)}}`,
  `@media (prefers-color-scheme:dark){:root{${variables(dark)}}}`,
].join('\n');

function each(names: readonly string[], rule: (name: string) => string): string[] {
  return names.map(rule);
}

const statuses = ['completed', 'running', 'failed', 'paused', 'pending', 'blocked'];
const waits = ['slot', 'cache', 'dependency', 'blocked', 'limit', 'budget', 'backoff', 'paused', 'errors'];

/** Rules for everything that pictures draw; `themeStyle` must come with them. */
export const pictureStyle = [
  'svg text{font:12px system-ui,sans-serif;fill:var(--fg)}',
  'svg text.dim{fill:var(--dim);font-size:11px}',
  'svg text.end{text-anchor:end}svg text.middle{text-anchor:middle}svg text.strong{font-weight:600}',
  '.grid{stroke:var(--line);stroke-width:1}',
  '.axis{stroke:var(--dim);stroke-width:1}',
  '.edge{fill:none;stroke:var(--dim);stroke-width:1.2}',
  '.head{fill:var(--dim)}',
  '.node{fill-opacity:.16;stroke-width:1.5}',
  ...each(statuses, (name) => `.s-${name}{fill:var(--${name});stroke:var(--${name})}`),
  '.cell,.bar,.wait{stroke:none}',
  '.preparing{fill-opacity:.45}.accepting{fill:var(--accepting)}',
  ...each(waits, (name) => `.w-${name}{fill:var(--wait-${name})}`),
  '.idle{fill:var(--line);fill-opacity:.55}.frozen{fill:var(--wait-paused);fill-opacity:.25}',
  '.mark{stroke-width:1;stroke-dasharray:3 3;stroke:var(--dim)}',
  '.mark.limit_reached,.mark.limit_lifted{stroke:var(--wait-limit)}',
  '.mark.budget_warning,.mark.budget_exceeded{stroke:var(--wait-budget)}',
  ...each(['1', '2', '3', '4', '5', '6'], (name) => `.f-${name}{fill:var(--series-${name})}`),
  ...each(
    ['1', '2', '3', '4', '5', '6'],
    (name) => `.l-${name}{fill:none;stroke:var(--series-${name});stroke-width:2}`,
  ),
  '.cap{stroke:var(--failed);stroke-width:1.5;stroke-dasharray:6 4}',
].join('\n');
