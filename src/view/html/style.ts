/** The style sheet of the report page. It loads nothing: no fonts, no pictures. */
import { pictureStyle, themeStyle } from '../picture/style.ts';

const statuses = [
  'completed',
  'running',
  'failed',
  'paused',
  'pending',
  'blocked',
  'created',
  'archived',
  'interrupted',
];

/** Of statuses that have no colour of their own. */
const colours: Readonly<Record<string, string>> = { created: 'pending', archived: 'pending', interrupted: 'paused' };

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
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;background:
linear-gradient(to right,var(--card) 40%,transparent) 0 0/48px 100% no-repeat local,
linear-gradient(to left,var(--card) 40%,transparent) 100% 0/48px 100% no-repeat local,
linear-gradient(to right,var(--dim),transparent) 0 0/12px 100% no-repeat scroll,
linear-gradient(to left,var(--dim),transparent) 100% 0/12px 100% no-repeat scroll,var(--card)}
.wide svg{display:block}.wide svg.stretch{width:100%;min-width:760px;height:auto}.tall{max-height:80vh;overflow:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:5px 7px;text-align:left;border-top:1px solid var(--line);white-space:nowrap}
thead th{border-top:0;color:var(--dim);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
td.words{white-space:normal;min-width:5em}td.long{white-space:normal;min-width:14em}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px;color:var(--dim);
padding:0;margin:.5em 0;list-style:none}
.legend svg{vertical-align:-1px;margin-right:5px}
article{border:1px solid var(--line);border-left:4px solid var(--pending);border-radius:8px;padding:10px 14px;
margin:10px 0;background:var(--card)}
article:target{outline:2px solid var(--running)}
.trouble{border:1px solid var(--line);border-left:4px solid var(--failed);border-radius:8px;padding:8px 14px;
margin:8px 0;background:var(--card)}
.trouble.paused,.trouble.blocked{border-left-color:var(--paused)}
.cure{margin:.3em 0;font-weight:600}
summary{cursor:pointer;color:var(--dim)}summary bdi{color:var(--fg)}details{margin:.4em 0}
.filter{display:inline-block;margin:.3em 0}
#sessions:has(#only-problems:checked) .fine{display:none}
.notes{list-style:none;padding:0;font-size:14px}.notes time{color:var(--dim);margin-right:.8em;white-space:nowrap}
footer{margin:3em 0 1em;color:var(--dim);font-size:13px}
@media print{.filter{display:none}.tall{max-height:none}pre{max-height:none}}
`;

const coloured = statuses
  .map((status) => {
    const colour = colours[status] ?? status;
    const rule = `.pill.s-${status}{color:var(--${colour});border-color:var(--${colour})}`;
    return `${rule}article.s-${status}{border-left-color:var(--${colour})}`;
  })
  .join('\n');

export const pageStyle = [themeStyle, pictureStyle, page.trim(), coloured].join('\n');
