/** The style sheet of the report page and its pictures, light and dark. It loads nothing: no fonts, no pictures. */

/** Name, light colour, dark colour. */
const colours: readonly (readonly [string, string, string])[] = [
  ['bg', '#ffffff', '#0d1117'],
  ['fg', '#1f2328', '#e6edf3'],
  ['dim', '#59636e', '#9198a1'],
  ['line', '#d1d9e0', '#3d444d'],
  ['card', '#f6f8fa', '#151b23'],
  ['completed', '#1a7f37', '#3fb950'],
  ['running', '#0969da', '#58a6ff'],
  ['failed', '#cf222e', '#f85149'],
  ['paused', '#9a6700', '#d29922'],
  ['pending', '#818b98', '#848d97'],
  ['blocked', '#a475f9', '#a475f9'],
  ['accepting', '#1b7c83', '#39c5cf'],
];

const variables = (column: 1 | 2): string => colours.map((row) => `--${row[0]}:${row[column]}`).join(';');

const statuses = ['completed', 'running', 'failed', 'paused', 'pending', 'blocked'];

export const pictureStyle = [
  `:root{color-scheme:light dark;${variables(1)}}`,
  `@media (prefers-color-scheme:dark){:root{${variables(2)}}}`,
  'svg text{font:12px system-ui,sans-serif;fill:var(--fg)}',
  'svg text.dim{fill:var(--dim);font-size:11px}',
  'svg text.end{text-anchor:end}svg text.middle{text-anchor:middle}svg text.strong{font-weight:600}',
  '.grid{stroke:var(--line);stroke-width:1}',
  '.edge{fill:none;stroke:var(--dim);stroke-width:1.2}',
  '.head{fill:var(--dim)}',
  '.node{fill-opacity:.16;stroke-width:1.5}',
  ...statuses.map((name) => `.s-${name}{fill:var(--${name});stroke:var(--${name})}`),
  '.bar{stroke:none}.preparing{fill-opacity:.45}.accepting{fill:var(--accepting)}',
  '.idle{fill:var(--line);fill-opacity:.55}',
].join('\n');

const page = `
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:16px;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6em;margin:.2em 0}h2{font-size:1.2em;margin:2em 0 .6em;border-bottom:1px solid var(--line);
padding-bottom:.2em}h3{font-size:1.05em;margin:0}
a{color:inherit;text-decoration-color:var(--dim)}
p{margin:.5em 0}.dim,small{color:var(--dim)}code,pre{font:13px/1.45 ui-monospace,Menlo,Consolas,monospace}
pre{background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:10px;margin:.5em 0;
white-space:pre-wrap;unicode-bidi:plaintext;max-height:32em;overflow:auto}
.pill{display:inline-block;border:1px solid var(--pending);color:var(--pending);border-radius:99px;
padding:0 .6em;font-size:.85em;font-weight:600;white-space:nowrap}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:1em 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.card b{display:block;font-size:1.35em;line-height:1.3}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;background:var(--card)}
.wide svg{display:block}.wide svg.stretch{width:100%;min-width:760px;height:auto}.tall{max-height:80vh;overflow:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:5px 7px;text-align:left;border-top:1px solid var(--line);white-space:nowrap}
thead th{border-top:0;color:var(--dim);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
td.words{white-space:normal;min-width:5em}td.long{white-space:normal;min-width:14em}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px;color:var(--dim);
padding:0;margin:.5em 0;list-style:none}
.legend svg{vertical-align:-1px;margin-right:5px}
article,.trouble{border:1px solid var(--line);border-left:4px solid var(--pending);border-radius:8px;padding:10px 14px;
margin:10px 0;background:var(--card)}
article:target{outline:2px solid var(--running)}
.cure{margin:.3em 0;font-weight:600}
summary{cursor:pointer;color:var(--dim)}summary bdi{color:var(--fg)}details{margin:.4em 0}
.filter{display:inline-block;margin:.3em 0}
#sessions:has(#only-problems:checked) .fine{display:none}
.notes{list-style:none;padding:0;font-size:14px}.notes time{color:var(--dim);margin-right:.8em;white-space:nowrap}
footer{margin:3em 0 1em;color:var(--dim);font-size:13px}
@media print{.filter{display:none}.tall{max-height:none}pre{max-height:none}}
`;

/** Statuses without a colour of their own keep that of `pending`, but for `interrupted`. */
const coloured = [...statuses, 'interrupted'].map((status) => {
  const colour = `var(--${status === 'interrupted' ? 'paused' : status})`;
  const framed = `article.s-${status},.trouble.s-${status}{border-left-color:${colour}}`;
  return `.pill.s-${status}{color:${colour};border-color:${colour}}${framed}`;
});

export const pageStyle = [pictureStyle, page.trim(), ...coloured].join('\n');
