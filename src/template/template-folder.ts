/** A folder of templates as it would be shared: its templates and its other files. */
import { join } from 'node:path';
import { type Problem, wholeFile } from '../store/yaml-text.ts';
import type { World } from '../system/world.ts';
import { type FoundTemplate, kindFolders, templateKinds, templatesIn } from './places.ts';
import { systemCode } from './text-file.ts';

const rules = {
  prompt: 'prompts are named NAME.md',
  config: 'configs are folders',
  workflow: 'workflows are named NAME.yaml',
};
const otherFiles = /^(?:\..*|README(?:\.\w+)?|Thumbs\.db|desktop\.ini)$/i;

export function isTemplateFolder({ files }: World, folder: string): boolean {
  return templateKinds.some((kind) => {
    try {
      return files.info(join(folder, kindFolders[kind]))?.kind === 'folder';
    } catch (error) {
      systemCode(error);
      return false;
    }
  });
}

export interface TemplateFolder {
  readonly templates: readonly FoundTemplate[];
  readonly problems: readonly Problem[];
}

export function lookThrough(world: World, folder: string): TemplateFolder {
  const templates: FoundTemplate[] = [];
  const problems: Problem[] = [];
  for (const kind of templateKinds) {
    const found = templatesIn(world, { folder, origin: 'environment' }, kind);
    const paths = new Set(found.map(({ path }) => path));
    const names = new Set<string>();
    for (const template of found) {
      const isTwice = names.has(template.name);
      if (isTwice) problems.push(wholeFile(template.path, 'is ignored: another file here has the same name'));
      names.add(template.name);
    }
    templates.push(...found);
    const path = join(folder, kindFolders[kind]);
    const listed = namesOf(world, path);
    if (typeof listed === 'string') problems.push(wholeFile(path, listed));
    else {
      for (const name of listed) {
        if (otherFiles.test(name) || paths.has(join(path, name))) continue;
        const rule = `${rules[kind]}, with letters, digits, "-", "_" or "." in the name, 64 at most`;
        problems.push(wholeFile(join(path, name), `cannot be used: ${rule}`));
      }
    }
  }
  return { templates, problems };
}

function namesOf({ files }: World, folder: string): readonly string[] | string {
  try {
    return files.list(folder);
  } catch (error) {
    return `cannot be read (${systemCode(error)})`;
  }
}
