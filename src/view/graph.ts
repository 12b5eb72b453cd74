/** The dependency graph as text for people, as Mermaid for Markdown, and as DOT for Graphviz. */
import type { SessionId } from '../core/group.ts';
import { planOf } from '../core/plan/plan.ts';
import type { GroupState } from '../core/state.ts';
import { padColumns, type Style } from './format.ts';
import { safeLine } from './terminal-text.ts';
import { listTitles, projectName, statusTone, titleOf } from './wording.ts';

export interface GraphNode {
  readonly id: SessionId;
  readonly title: string;
  readonly status: string;
  readonly project: string;
  readonly dependsOn: readonly SessionId[];
  /** 0 for sessions that depend on nothing, else one more than the latest dependency. */
  readonly wave: number;
}

/** Sessions in dependency order. */
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

/** Wave by wave: sessions of one wave can run at the same time. */
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
