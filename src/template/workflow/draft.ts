/** A workflow as it was understood: what becomes a group once its sessions have ids. */

import type { GroupConfig, PromptReference, SessionDefinition, WorkflowRef } from '../../core/group.ts';
import type { ConfigTemplate } from '../config-template.ts';
import type { ProjectCommand } from './project-file.ts';

/** A place in a draft's prompt that other sessions of the workflow fill; like PromptReference, by key. */
export interface DraftReference extends Omit<PromptReference, 'sessionIds'> {
  /** Keys of drafts. */
  readonly keys: readonly string[];
}

/** One session, after the matrix was expanded. */
export interface SessionDraft {
  /** Unique in the group; also the session's name. */
  readonly key: string;
  /** `variables` are the values with which its templates were filled in, defaults included. */
  readonly definition: Omit<
    SessionDefinition,
    'id' | 'dependsOn' | 'createdAt' | 'promptReferences' | 'configTemplate'
  >;
  /** Keys of drafts. */
  readonly dependsOn: readonly string[];
  readonly references: readonly DraftReference[];
  readonly configTemplate?: ConfigTemplate;
}

export interface WorkflowDraft {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  /** Only what the file says; the rest has its defaults. */
  readonly config: Partial<GroupConfig>;
  /** Name of the prompt template for sessions that name none. */
  readonly template?: string;
  readonly configTemplate?: ConfigTemplate;
  readonly variables: Readonly<Record<string, string>>;
  /** Every session after those it depends on; among equals in the order of the file. */
  readonly sessions: readonly SessionDraft[];
  readonly workflow: WorkflowRef;
  /** Commands of the projects' own files that sessions are going to run. */
  readonly projectCommands: readonly ProjectCommand[];
}
