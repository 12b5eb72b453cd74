/** Who waits for whom in an expanded workflow, in which order they can run, and who is an ancestor of whom. */

import { buildGraph } from '../../core/graph.ts';
import { quoted } from '../../core/id.ts';
import type { Families, Instance } from './expand.ts';
import type { Problems } from './problems.ts';
import { parseDependency, select } from './session-references.ts';

/** Over all sessions; each is stored with the ids of those it waits for. */
export const dependenciesMax = 100_000;

export interface Wiring {
  /** Every session after those it waits for; among equals in the order of the file. */
  readonly order: readonly Instance[];
  readonly dependsOn: ReadonlyMap<Instance, ReadonlySet<Instance>>;
  /** Whether `to` waits for `from`, directly or indirectly. */
  isAncestor(from: Instance, to: Instance): boolean;
}

/** Undefined when there is no order: the dependencies form a cycle, or are too many. */
export function wire(families: Families, problems: Problems): Wiring | undefined {
  const instances = [...families.values()].flatMap((family) => family.instances);
  const dependsOn = new Map<Instance, Set<Instance>>();
  let total = 0;
  for (const instance of instances) {
    const found = dependenciesOf(instance, families, problems);
    total += found.size;
    if (total > dependenciesMax) {
      problems.at(['sessions', instance.family.key, 'dependsOn'], `makes more than ${dependenciesMax} dependencies`);
      return undefined;
    }
    dependsOn.set(instance, found);
  }
  const order = orderOf(instances, dependsOn, problems);
  if (order === undefined) return undefined;
  const known = new Map<Instance, ReadonlySet<Instance>>();
  const isAncestor = (from: Instance, to: Instance): boolean => {
    const ancestors = known.get(to) ?? ancestorsOf(to, dependsOn);
    known.set(to, ancestors);
    return ancestors.has(from);
  };
  return { order, dependsOn, isAncestor };
}

function dependenciesOf(instance: Instance, families: Families, problems: Problems): Set<Instance> {
  const { key, spec } = instance.family;
  const { dependsOn = [] } = spec;
  const path = ['sessions', key, 'dependsOn'];
  const found = new Set<Instance>();
  const hint = problems.hint.bind(problems);
  for (const [index, text] of [dependsOn].flat().entries()) {
    const at = typeof dependsOn === 'string' ? path : [...path, index];
    const target = parseDependency(text, families, hint);
    const selected = target.ok ? select(target.value, instance, hint) : target;
    if (!selected.ok) {
      problems.at(at, selected.problem);
      continue;
    }
    if (selected.value.instances.includes(instance)) problems.at(at, `${quoted(key)} would wait for itself`);
    else for (const one of selected.value.instances) found.add(one);
  }
  return found;
}

type Edges = ReadonlyMap<Instance, ReadonlySet<Instance>>;

/** The graph only gets numbers for ids: a session may be called as a property of every object. */
function orderOf(
  instances: readonly Instance[],
  dependsOn: Edges,
  problems: Problems,
): readonly Instance[] | undefined {
  const ids = new Map(instances.map((instance, index) => [instance, `${index}`]));
  const nodes = instances.map((instance) => ({
    id: ids.get(instance) as string,
    name: instance.key,
    dependsOn: [...(dependsOn.get(instance) ?? [])].map((one) => ids.get(one) as string),
  }));
  const graph = buildGraph(nodes);
  if (graph.ok) return graph.value.order.map((id) => instances[Number(id)] as Instance);
  const { message } = graph.failure;
  // The cycle is told at the session with which its path begins.
  const start = /: (\S+) -> /.exec(message)?.[1];
  const first = instances.find(({ key }) => key === start);
  const sentence = message.replace(/^T/, 't').replace(/\.$/, '');
  problems.at(first === undefined ? ['sessions'] : ['sessions', first.family.key, 'dependsOn'], sentence);
  return undefined;
}

function ancestorsOf(instance: Instance, dependsOn: Edges): ReadonlySet<Instance> {
  const found = new Set<Instance>();
  const open = [instance];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const dependency of dependsOn.get(next) ?? []) {
      if (!found.has(dependency)) open.push(dependency);
      found.add(dependency);
    }
  }
  return found;
}
