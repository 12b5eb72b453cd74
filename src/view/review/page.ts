/** The review as one HTML page that loads and sends nothing; its policy allows only its own style and script. */
import { commandText } from '../../core/advice.ts';
import { type Child, cutText, el, fragment, isolated, Markup, pageStart, pageStyle, pill } from '../html/markup.ts';
import { safeLine, spelledLine } from '../terminal-text.ts';
import { oneOf } from './patch.ts';
import {
  actionsOf,
  answersOf,
  changeText,
  checkText,
  choicesOf,
  costText,
  kindTitle,
  mergeSafeCommand,
  type OpenDecision,
  type Review,
  type ReviewFile,
  type ReviewRow,
} from './review.ts';

const textBytesMax = 20_000;
const diffLinesMax = 600;
const filesMax = 200;

const style = `${pageStyle}
details.row{border:1px solid var(--line);border-radius:8px;margin:8px 0;background:var(--card);padding:6px 12px}
details.row>summary{color:var(--fg);display:flex;flex-wrap:wrap;gap:2px 12px;align-items:baseline}
summary:focus-visible{outline:2px solid var(--running);outline-offset:2px}
.figures{margin-left:auto;color:var(--dim);font-size:13px}
.high{color:var(--failed)}.medium{color:var(--paused)}.low{color:var(--dim)}
.high bdi,.medium bdi{color:inherit}
ul.risks{padding-left:1.2em;margin:.4em 0}
pre.diff{white-space:pre;max-height:none;padding:6px 0}pre.diff span.l{display:block;padding:0 8px;min-height:1.45em}
.add{background:color-mix(in srgb,var(--completed) 14%,transparent)}
.del{background:color-mix(in srgb,var(--failed) 14%,transparent)}.at{color:var(--running)}.head{color:var(--dim)}
.s{color:var(--completed)}.k{color:var(--blocked)}.c{color:var(--dim);font-style:italic}.d{color:var(--running)}
kbd{border:1px solid var(--line);border-radius:4px;padding:0 .4em;font:12px ui-monospace,monospace}`;

/** Moves between rows and opens them. What stands in the page is never run. */
const script = `
const rows=[...document.querySelectorAll('details.row')];
const here=()=>rows.findIndex((row)=>row.contains(document.activeElement));
const go=(index)=>{const row=rows[Math.max(0,Math.min(rows.length-1,index))];if(!row)return;
row.querySelector('summary').focus();row.scrollIntoView({block:'nearest'})};
addEventListener('keydown',(event)=>{
if(event.ctrlKey||event.metaKey||event.altKey)return;
const row=rows[here()];
if(event.key==='j'||event.key==='n')go(here()+1);
else if(event.key==='k')go(here()<0?0:here()-1);
else if(event.key==='o'&&row)row.open=!row.open;
else if(event.key==='f'&&row){const files=[...row.querySelectorAll('details')];
const open=files.some((file)=>!file.open);row.open=true;for(const file of files)file.open=open}
else if(event.key==='?')document.querySelector('#keys').open^=1;
else if(event.key==='Escape'&&row){row.open=false;go(here())}
else return;event.preventDefault()});`;

const digestOf = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('base64');

export function reviewPage(review: Review): string {
  const { name, headline, groupId, rows, halt, union } = review;
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${digestOf(style)}'`,
    `script-src 'sha256-${digestOf(script)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const head = fragment(
    el('meta', { 'http-equiv': 'Content-Security-Policy', content: policy }),
    el('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    el('meta', { name: 'color-scheme', content: 'light dark' }),
    el('meta', { name: 'referrer', content: 'no-referrer' }),
    el('title', {}, `Review of ${safeLine(name, 60)}`),
    new Markup(`<style>${style}</style>`),
  );
  const sections = [...Map.groupBy(rows, ({ kind }) => kind)].map(([kind, some]) => {
    const all = kind === 'safe' ? mergeSafeCommand(review) : null;
    const title = el('h2', {}, `${kindTitle(kind)} (${some.length})`);
    return el(
      'section',
      { id: kind },
      title,
      all === null ? null : codeBlock(all),
      some.map((row) => rowOf(review, row)),
    );
  });
  const body = fragment(
    el('header', {}, el('h1', {}, isolated(name, 400)), el('p', { id: 'headline' }, el('b', {}, headline)), keyHelp),
    review.decisions.map(decisionOf),
    halt === undefined ? null : el('p', {}, isolated(halt)),
    union === undefined ? null : el('p', {}, isolated(union)),
    el('main', {}, sections),
    el('footer', {}, `Group ${groupId}. This page changes nothing; paste its commands into a terminal.`),
    new Markup(`<script>${script}</script>`),
  );
  return `${pageStart}content="claude-code-agent">${head}</head>\n<body>${body}</body></html>\n`;
}

const keys = { j: 'next', k: 'previous', Enter: 'open or close', f: 'all files', Esc: 'close', '?': 'this list' };
const keyHelp = el(
  'details',
  { id: 'keys' },
  el('summary', {}, 'Keys'),
  Object.entries(keys).map(([key, what]) => el('span', {}, el('kbd', {}, key), ` ${what} `)),
);

function rowOf(review: Review, row: ReviewRow): Markup {
  const { title, project, status, reason, risks, asked, said, evidence, files, branch, pullRequest } = row;
  const [worst] = risks;
  const summary = el(
    'summary',
    {},
    el('b', {}, isolated(title)),
    el('span', { class: 'dim' }, isolated(project)),
    status === 'completed' ? null : pill(status, reason),
    worst === undefined || worst.level === 'low' ? null : el('span', { class: worst.level }, isolated(worst.text, 300)),
    el('span', { class: 'figures' }, `${changeText(row)} · ${costText(row)}`),
  );
  return el(
    'details',
    { class: 'row' },
    summary,
    row.decisions.map(decisionOf),
    el(
      'ul',
      { class: 'risks' },
      risks.map(({ level, text }) => el('li', { class: level }, spelledLine(text))),
    ),
    part('Asked', asked),
    part('Said at its end', said),
    evidence.map((run) => el('p', {}, isolated(checkText(run)))),
    branch === undefined ? null : el('p', { class: 'dim' }, 'Branch ', el('code', {}, branch)),
    pullRequest === undefined ? null : el('p', { class: 'dim' }, 'Pull request ', el('code', {}, pullRequest)),
    actionsOf(review.groupId, row).map(({ words, disabled }) =>
      disabled === undefined ? codeBlock(commandText(words)) : null,
    ),
    row.notMergeable === undefined ? null : el('p', { class: 'dim' }, row.notMergeable),
    files.slice(0, filesMax).map(fileOf),
    files.length > filesMax ? el('p', { class: 'dim' }, `And ${files.length - filesMax} more files.`) : null,
  );
}

function part(title: string, text: string): Markup | null {
  if (text === '') return null;
  const { text: shown, cutFrom } = cutText(text, textBytesMax);
  return fragment(el('p', { class: 'dim' }, title), el('pre', {}, cutFrom === undefined ? shown : `${shown}…`));
}

function decisionOf(decision: OpenDecision): Markup {
  return el(
    'div',
    { class: 'trouble s-paused' },
    el('p', {}, isolated(decision.text)),
    choicesOf(decision).map((choice) => el('p', {}, isolated(choice))),
    answersOf(decision).map(codeBlock),
  );
}

function codeBlock(command: string): Markup {
  return el('pre', { class: 'command' }, command);
}

function fileOf({ path, from, kind, isBinary, insertions, deletions, text }: ReviewFile): Markup {
  const name = from === undefined ? path : `${from} → ${path}`;
  const size = isBinary ? 'binary' : `+${insertions} −${deletions}`;
  const lines = text.replace(/\n$/, '').split('\n');
  const hidden = lines.length - diffLinesMax;
  return el(
    'details',
    {},
    el('summary', {}, el('bdi', {}, spelledLine(name)), ` ${kind}, ${size}`),
    el('pre', { class: 'diff' }, lines.slice(0, diffLinesMax).map(lineOf)),
    hidden > 0 ? el('p', { class: 'dim' }, `And ${hidden} more lines. Git shows all of them.`) : null,
  );
}

function lineOf(raw: string): Markup {
  const line = spelledLine(raw.replace(/\r$/, '').slice(0, 2000));
  if (line.startsWith('@@ ')) return el('span', { class: 'l at' }, line);
  if (!/^[ +-](?!--|\+\+)/.test(line)) return el('span', { class: 'l head' }, line);
  const side = line.startsWith('+') ? 'l add' : line.startsWith('-') ? 'l del' : 'l';
  return el('span', { class: side }, line.slice(0, 1), coloured(line.slice(1)));
}

/** Strings, comments, keywords and numbers look alike enough in most languages. */
const words =
  'async|await|break|case|class|const|def|else|enum|export|extends|fn|for|from|func|function|if|impl|import|' +
  'interface|let|match|new|package|pub|return|self|static|struct|switch|this|throw|try|type|use|var|while';
const token = oneOf(
  /("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)|(\/\/.*|(?:^|\s)#\s.*|\/\*.*?\*\/)/g,
  new RegExp(`\\b(${words})\\b`),
  /\b(\d[\d._]*)\b/,
);
const classes = ['s', 'c', 'k', 'd'] as const;

function coloured(code: string): Child {
  const parts: Child[] = [];
  let end = 0;
  for (const found of code.matchAll(token)) {
    const kind = classes[found.slice(1).findIndex((group) => group !== undefined)];
    parts.push(code.slice(end, found.index), el('span', { class: kind }, found[0]));
    end = found.index + found[0].length;
  }
  return [...parts, code.slice(end)];
}
