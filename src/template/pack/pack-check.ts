/** Whether the templates of a pack can be used: each is loaded as it would be when somebody names it. */
import { basename, join } from 'node:path';
import type { Problem } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { loadConfigTemplate } from '../config-template.ts';
import type { TemplatePlace } from '../places.ts';
import { loadPromptTemplate } from '../prompt-template.ts';
import { readTextFile } from '../text-file.ts';
import { validateWorkflowFile } from '../workflow.ts';
import type { PackFile } from './pack-files.ts';

const workflowBytesMax = 1024 * 1024;

export interface PackCheck {
  /** Where the pack's files lie now. */
  readonly folder: string;
  readonly files: readonly Pick<PackFile, 'path'>[];
  /** Where else its workflows may find templates. */
  readonly places: (projects: readonly string[]) => readonly TemplatePlace[];
  readonly home: string | undefined;
}

/** Every problem of every template. */
export function checkPack(world: World, { folder, files, places, home }: PackCheck): Problem[] {
  const own: TemplatePlace = { folder, origin: 'user' };
  const configs = new Set<string>();
  return files.flatMap(({ path }): readonly Problem[] => {
    const [kind = '', name = ''] = path.split('/');
    const full = join(folder, path);
    if (kind === 'prompts') {
      const loaded = loadPromptTemplate(world, full);
      return loaded.ok ? [] : loaded.problems;
    }
    if (kind === 'configs') {
      if (configs.has(name)) return [];
      configs.add(name);
      const loaded = loadConfigTemplate(world, join(folder, kind, name));
      return loaded.ok ? [] : loaded.problems;
    }
    const read = readTextFile(world, full, workflowBytesMax);
    if (!read.ok) return [{ file: full, line: 1, column: 1, message: read.trouble }];
    return validateWorkflowFile(world, {
      file: full,
      text: read.text,
      name: basename(path).replace(/\.ya?ml$/, ''),
      baseFolder: join(folder, kind),
      home,
      places: (projects) => [own, ...places(projects)],
    });
  });
}
