/** The report of a group as Markdown for a pull request. Foreign text becomes neither markup nor mentions. */
import { adviceText, type MarkUp } from '../core/advice.ts';
import type { SessionId } from '../core/group.ts';
import { failureAdvice } from '../core/plan/advice.ts';
import { planOf } from '../core/plan/plan.ts';
import type { GroupState } from '../core/state.ts';
import {
  formatCount,
  formatDuration,
  formatMoney,
  formatTokens,
  formatUtc,
  inputTokens,
  padColumns,
  plural,
  type Style,
} from './format.ts';
import { cleanText } from './html/markup.ts';
import { type ReportModel, type ReportSession, shownStatus } from './html/model.ts';
import { nextAdvice } from './summary.ts';
import { safeLine } from './terminal-text.ts';
import { listTitles, projectName, statusTone, titleOf } from './wording.ts';

/** GitHub refuses a body of more than 65,536 characters. */
const charactersMax = 60_000;
const rowsMax = 100;
const troublesMax = 30;
const graphSessionsMax = 60;
const resultCharactersMax = 1500;

export function reportMarkdown(state: GroupState, model: ReportModel): string {
  const parts = [headOf(state, model), sessionRows(model), troubles(state, model), graph(state), costs(model)];
  const fixed = parts.filter((part) => part !== '').join('\n\n');
  const foot = `<sub>Group \`${model.groupId}\`, as of ${formatUtc(model.asOf)}, made by claude-code-agent</sub>`;
  const results = resultsOf(model, charactersMax - fixed.length - foot.length - 200);
  return `${[fixed, results, foot].filter((part) => part !== '').join('\n\n')}\n`;
}

function headOf(state: GroupState, model: ReportModel): string {
  const { name, status, reason, condition, counts, sessions, cost, tokens, elapsedMs, rehearsal, description } = model;
  const { interrupted = false } = model;
  const shown = shownStatus(model);
  const why = condition ?? reason;
  const money = formatMoney(cost.spentUsd, cost.estimated);
  const facts = [
    `${counts.completed} of ${plural(sessions.length, 'session')} completed`,
    ...(counts.failed > 0 ? [`${counts.failed} failed`] : []),
    cost.limitUsd === undefined ? money : `${money} of ${formatMoney(cost.limitUsd)}`,
    formatTokens(tokens),
    formatDuration(elapsedMs),
  ];
  const lines = [
    `## ${escapeMarkdown(name, 100)}: ${shown}${why === undefined ? '' : ` (${escapeMarkdown(why, 80)})`}`,
  ];
  if (description !== '') lines.push('', escapeMarkdown(description, 600));
  lines.push('', `**${escapeMarkdown(facts.join(', '), 300)}**`);
  if (rehearsal) lines.push('', 'This was a rehearsal with a scripted model; the costs are not real.');
  if (status !== 'completed') {
    for (const advice of nextAdvice(state, !interrupted)) lines.push('', adviceText(advice, markdown));
  }
  return lines.join('\n');
}

function sessionRows({ sessions }: ReportModel): string {
  if (sessions.length === 0) return 'No sessions.';
  const isFleet = sessions.some(({ host }) => host !== undefined);
  const rows = sessions.slice(0, rowsMax).map((session) => {
    const { title, status, reason, blockedBy, work, attempts, costUsd, estimated, durationMs } = session;
    const why = blockedBy === undefined ? reason : 'blocked';
    const tried = attempts.length > 0;
    const cells = [
      escapeMarkdown(title, 40),
      ...(isFleet ? [escapeMarkdown(session.host ?? 'here', 63)] : []),
      why === undefined ? status : `${status} (${escapeMarkdown(why, 40)})`,
      work === undefined ? '' : `+${work.insertions} −${work.deletions} in ${plural(work.files, 'file')}`,
      escapeMarkdown(branchText(session), 90),
      tried ? formatDuration(durationMs) : '',
      tried ? escapeMarkdown(formatMoney(costUsd, estimated), 20) : '',
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const hidden = sessions.length - rows.length;
  const [host, line] = isFleet ? [' Host |', ' --- |'] : ['', ''];
  const head = [
    `| Session |${host} Status | Changes | Branch | Time | Cost |`,
    `| --- |${line} --- | --- | --- | ---: | ---: |`,
  ];
  return [...head, ...rows, ...(hidden > 0 ? ['', `And ${plural(hidden, 'further session')}.`] : [])].join('\n');
}

/** For a removed branch, names the branch that contains its work. */
function branchText({ branch, branchRemoved, mergedInto, projectPath }: ReportSession): string {
  if (branch === undefined || !branchRemoved) return branch ?? '';
  return mergedInto === undefined ? `${branch} (removed)` : `merged into ${mergedInto} of ${projectName(projectPath)}`;
}

/** Commands are code, so that they can be copied. */
const markdown: MarkUp = { sentence: (text) => escapeMarkdown(text, 500), command: codeSpan };

function codeSpan(text: string): string {
  const fence = '`'.repeat((text.match(/`+/g) ?? []).reduce((max, row) => Math.max(max, row.length), 0) + 1);
  return fence.length > 1 ? `${fence} ${text} ${fence}` : `\`${text}\``;
}

function troubles(state: GroupState, { sessions }: ReportModel): string {
  const bad = sessions.filter(({ status }) => status === 'failed' || status === 'paused');
  const warned = sessions.flatMap(({ title, warnings }) => warnings.map(({ message }) => ({ title, message })));
  const lines = [
    ...bad.map(({ id, title, status, reason = '', message = '' }) => {
      const record = state.sessions.get(id);
      const cure =
        record?.state.status === 'failed'
          ? ` **Next step:** ${adviceText(failureAdvice(state, record, record.state.failure), markdown)}`
          : '';
      const why = reason === '' ? '' : ` (${escapeMarkdown(reason, 40)})`;
      return `- **${escapeMarkdown(title, 40)}** ${status}${why}: ${escapeMarkdown(message, 400)}${cure}`;
    }),
    ...warned.map(
      ({ title, message }) => `- **${escapeMarkdown(title, 40)}** warning: ${escapeMarkdown(message, 300)}`,
    ),
  ];
  if (lines.length === 0) return '';
  const hidden = lines.length - troublesMax;
  const more = hidden > 0 ? [`- and ${hidden} more`] : [];
  return ['### Problems', '', ...lines.slice(0, troublesMax), ...more].join('\n');
}

function graph(state: GroupState): string {
  const { size } = state.sessions;
  const edges = [...state.sessions.values()].some(({ definition }) => definition.dependsOn.length > 0);
  if (!edges || size > graphSessionsMax) return '';
  // `%%` starts a comment or directive of Mermaid.
  const lines = mermaidGraph(state).map((line) => cleanText(line).replaceAll('%', '#37;').replaceAll('`', '#96;'));
  return fold('Dependencies', ['```mermaid', ...lines, '```'].join('\n'));
}

function costs({ models }: ReportModel): string {
  if (models.length === 0) return '';
  const rows = models.slice(0, 20).map(({ model, costUsd, tokens, estimated }) => {
    const money = escapeMarkdown(formatMoney(costUsd, estimated), 20);
    const counts = [inputTokens(tokens), tokens.output].map(formatCount);
    return `| ${[escapeMarkdown(model, 60), money, ...counts].join(' | ')} |`;
  });
  return fold('Cost by model', ['| Model | Cost | In | Out |', '| --- | ---: | ---: | ---: |', ...rows].join('\n'));
}

function resultsOf({ sessions }: ReportModel, characters: number): string {
  const withResult = sessions.filter(({ result }) => result !== undefined && result.trim() !== '');
  const parts: string[] = [];
  let left = characters;
  for (const session of withResult) {
    const part = resultOf(session);
    if (part.length + 2 > left) break;
    left -= part.length + 2;
    parts.push(part);
  }
  if (parts.length === 0) return '';
  const hidden = withResult.length - parts.length;
  if (hidden > 0) parts.push(`And ${plural(hidden, 'further result')}.`);
  return fold('Results', parts.join('\n\n'));
}

function resultOf({ title, result = '' }: ReportSession): string {
  const text = cleanText(result.slice(0, resultCharactersMax * 2)).trim();
  const shown = text.slice(0, resultCharactersMax).toWellFormed();
  const cut = text.length > shown.length || result.length > resultCharactersMax * 2;
  const note = cut ? `\n\nCut: ${shown.length} of ${result.length} characters.` : '';
  return `**${escapeMarkdown(title, 40)}**\n\n${codeBlock(shown)}${note}`;
}

/** GitHub renders Markdown inside <details> only between blank lines. */
function fold(title: string, body: string): string {
  return `<details><summary>${title}</summary>\n\n${body}\n\n</details>`;
}

/** A code block with a fence longer than any run of backticks in the text. */
export function codeBlock(text: string): string {
  const longest = (text.match(/`+/g) ?? []).reduce((max, row) => Math.max(max, row.length), 2);
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

/** Escapes one line, cut to `columns` columns before. */
export function escapeMarkdown(text: string, columns: number): string {
  return (
    safeLine(cleanText(text.slice(0, columns * 8)), columns)
      .replace(/[\\`*_[\]#|~^$]/g, '\\$&')
      // At the start of a line, these begin lists and headings.
      .replace(/^(?:[-+=]|\d+(?=[.)]))/, (found) => (/\d/.test(found) ? `${found}\\` : `\\${found}`))
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll(':/', '&colon;/')
      // An empty comment breaks mentions and references, which GitHub finds after it has removed escapes.
      .replaceAll('@', '@<!-- -->')
      .replace(/\\#(?=\d)/g, '\\#<!-- -->')
      .replace(/\bGH-(?=\d)/gi, '$&<!-- -->')
      .replace(/\bwww\./gi, '$&<!-- -->')
  );
}

export interface GraphNode {
  readonly id: SessionId;
  readonly title: string;
  readonly status: string;
  readonly project: string;
  readonly dependsOn: readonly SessionId[];
  /** 0 for sessions that depend on nothing, else one more than the latest dependency. */
  readonly wave: number;
}

export function graphNodes(state: GroupState): GraphNode[] {
  const { order, wave } = planOf(state).graph;
  return order.flatMap((id) => {
    const record = state.sessions.get(id);
    if (record === undefined) return [];
    const { dependsOn, projectPath } = record.definition;
    const { status } = record.state;
    const node = { id, title: titleOf(state, id), status, project: projectName(projectPath), dependsOn };
    return [{ ...node, wave: wave.get(id) ?? 0 }];
  });
}

export function textGraph(state: GroupState, style: Style): string[] {
  const nodes = graphNodes(state);
  const width = nodes.reduce((max, node) => Math.max(max, Bun.stringWidth(node.title)), 0);
  const lines: string[] = [];
  const waves = nodes.reduce((max, node) => Math.max(max, node.wave + 1), 0);
  for (let wave = 0; wave < waves; wave += 1) {
    lines.push(style('dim', `Wave ${wave + 1}`));
    for (const node of nodes.filter((one) => one.wave === wave)) {
      const status = style(statusTone(node.status), node.status) + ' '.repeat(Math.max(0, 9 - node.status.length));
      const after = node.dependsOn.length === 0 ? '' : `  after ${listTitles(state, node.dependsOn)}`;
      lines.push(`  ${padColumns(node.title, width)}  ${status}  ${node.project}${after}`);
    }
  }
  return lines.length === 0 ? ['No sessions.'] : lines;
}

export function mermaidGraph(state: GroupState): string[] {
  const nodes = graphNodes(state);
  const names = new Map(nodes.map((node, index) => [node.id, `s${index + 1}`]));
  const quote = (text: string): string =>
    text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  const lines = nodes.map((node) => `  ${names.get(node.id)}["${quote(node.title)}<br/>${quote(node.project)}"]`);
  for (const node of nodes) {
    for (const dependency of node.dependsOn) lines.push(`  ${names.get(dependency)} --> ${names.get(node.id)}`);
  }
  return ['graph TD', ...lines];
}

export function dotGraph(state: GroupState): string[] {
  const nodes = graphNodes(state);
  const quote = (text: string): string =>
    `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
  const lines = nodes.map((node) => `  ${quote(node.id)} [label=${quote(`${node.title}\n${node.project}`)}];`);
  for (const node of nodes) {
    for (const dependency of node.dependsOn) lines.push(`  ${quote(dependency)} -> ${quote(node.id)};`);
  }
  const name = quote(safeLine(state.group.slug, 80));
  return [`digraph ${name} {`, '  node [shape=box];', ...lines, '}'];
}
