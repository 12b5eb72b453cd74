/** Groups whose sessions work in repositories, with fakes for claude. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupConfig, SessionDefinition } from '../../../src/core/group.ts';
import type { Invocation } from '../fake-claude-rig.ts';
import { Repository } from '../git/repository.ts';
import type { GroupFixture, SessionSketch } from '../group-fixture.ts';
import { begin, make as makeFixture } from '../rig-ground.ts';

/** `of`: the project whose repository it shares, for another checkout of that one. */
export type Sketch = SessionSketch & { readonly in: string; readonly of?: string };

/** A group whose sessions work in repositories with one commit each. */
export function makeInRepositories(
  sketches: readonly Sketch[],
  config: Partial<GroupConfig> = {},
  speed = 1,
): GroupFixture {
  const folderOf = new Map<string, string>();
  // The fixture creates the folders; their session definitions are complete only afterwards.
  const fields = sketches.map((sketch) => {
    const late: Partial<SessionDefinition> = {
      get repository() {
        return join(folderOf.get(sketch.of ?? sketch.in) ?? '', '.git');
      },
      ...sketch.fields,
    };
    return late;
  });
  const placed = sketches.map(({ in: project, of: _of, ...sketch }, index) => {
    return { ...sketch, project, fields: fields[index] as Partial<SessionDefinition> };
  });
  return makeFixture(placed, config, {
    speed,
    beforeSessions: (folder) => {
      for (const { in: name } of sketches) {
        if (folderOf.has(name)) continue;
        folderOf.set(name, join(folder, 'projects', name));
        new Repository(join(folder, 'projects', name)).commit({ 'base.txt': 'base\n', '.gitignore': 'ignored\n' });
      }
    },
  });
}

/** The fake writes the files in its folder and reports success. */
export async function work(
  group: GroupFixture,
  name: string,
  files: Readonly<Record<string, string>>,
): Promise<Invocation> {
  const fake = await begin(group, name);
  for (const [path, text] of Object.entries(files)) writeFileSync(join(fake.hello.cwd, path), text);
  await fake.succeed();
  return fake;
}

export const recordOf = (group: GroupFixture, name: string) => group.state().sessions.get(group.id(name));
