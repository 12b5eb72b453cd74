/** Groups and workflows for the home screen. */
import { basename, join } from 'node:path';
import { describeFailure } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { createdAtOf, slugOf } from '../../core/id.ts';
import { type GroupListing, listGroups } from '../../store/group-store.ts';
import { listTemplates } from '../../template/places.ts';
import { readTextFile } from '../../template/text-file.ts';
import type { AppContext } from '../app-context.ts';
import { templateFolders } from '../create/named-template.ts';
import { tryPath } from '../path-argument.ts';
import { presentGroup } from './live-view.ts';

export interface HomeGroup {
  readonly id: GroupId;
  readonly slug: string;
  readonly name: string;
  readonly status: string;
  readonly done: number;
  readonly total: number;
  readonly costUsd: number;
  readonly estimated: boolean;
  readonly isRehearsal: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly message?: string;
}

export interface HomeWorkflow {
  readonly reference: string;
  readonly origin: string;
}

const messageColumnsMax = 300;
/** Larger YAML files are not workflows. */
const workflowBytesMax = 256 * 1024;
const filesMax = 50;

export function homeGroups(context: AppContext, root: string): HomeGroup[] {
  return listGroups(context.world, root).map((listing) => homeGroup(context, root, listing));
}

function homeGroup(context: AppContext, root: string, { id, meta, problem }: GroupListing): HomeGroup {
  const slug = slugOf(id);
  const at = createdAtOf(id);
  if (meta === undefined || problem !== undefined) {
    const status = /^(newer|older)-version$/.exec(problem?.reason ?? '')?.[1] ?? 'damaged';
    const counts = { done: 0, total: 0, costUsd: 0, estimated: false, isRehearsal: false };
    const message = problem === undefined ? '' : describeFailure(problem).slice(0, messageColumnsMax);
    return { id, slug, name: slug, status, ...counts, createdAt: at, updatedAt: at, message };
  }
  const { meta: now, status } = presentGroup(context, root, meta);
  const message = status === 'interrupted' ? 'its runner is gone' : now.message;
  return {
    id,
    slug,
    name: now.name,
    status,
    done: now.sessions.filter((session) => session.status === 'completed').length,
    total: now.sessions.length,
    costUsd: now.cost,
    estimated: now.estimated === true,
    isRehearsal: now.rehearsal === true,
    createdAt: now.createdAt,
    updatedAt: now.updatedAt,
    ...(message === undefined ? {} : { message: message.slice(0, messageColumnsMax) }),
  };
}

export function homeWorkflows(context: AppContext): HomeWorkflow[] {
  return [...filesHere(context), ...templates(context)];
}

function filesHere({ world, cwd }: AppContext): HomeWorkflow[] {
  const names = tryPath(() => world.files.list(cwd));
  if (!names.ok) return [];
  return names.value
    .filter((name) => /\.ya?ml$/i.test(name))
    .slice(0, filesMax)
    .filter((name) => {
      const read = readTextFile(world, join(cwd, name), workflowBytesMax);
      return read.ok && /^sessions:/m.test(read.text) && /^version:/m.test(read.text);
    })
    .map((name) => ({ reference: basename(name), origin: 'this folder' }));
}

function templates(context: AppContext): HomeWorkflow[] {
  return listTemplates(context.world, templateFolders(context))
    .filter(({ template }) => template.kind === 'workflow')
    .map(({ template }) => ({ reference: template.name, origin: `template, ${template.place.origin}` }));
}
