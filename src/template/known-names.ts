/** The names that every template knows besides its own variables: of the project, the session and the group. */
import { basename } from 'node:path';
import type { Lookup } from './render.ts';

export interface Surroundings {
  readonly projectPath: string;
  readonly session: string;
  readonly group: { readonly name: string; readonly slug: string };
}

export const surroundingNames = ['project.path', 'project.name', 'session.name', 'group.name', 'group.slug'] as const;

/** Answers the names of `surroundingNames`. */
export function lookupSurroundings({ projectPath, session, group }: Surroundings): Lookup {
  const values: Readonly<Record<(typeof surroundingNames)[number], string>> = {
    'project.path': projectPath,
    'project.name': basename(projectPath),
    'session.name': session,
    'group.name': group.name,
    'group.slug': group.slug,
  };
  return (name) => (Object.hasOwn(values, name) ? values[name as keyof typeof values] : undefined);
}
