/** `template validate`: everything that is wrong with a template, or with a folder of templates, at once. */
import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { briefPath } from '../../../app/path-argument.ts';
import { type Checked, checkTemplates, workflowTextProblems } from '../../../app/template/check-template.ts';
import { ok } from '../../../core/failure.ts';
import { inOrder, problemsFailure } from '../../../store/yaml-text.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { readPipedYaml, standardInput } from '../../options/prompt-source.ts';

const example = `
Example:
  $ claude-code-agent template validate prompts/code-review.md
  $ claude-code-agent template validate .claude-code-agent/templates
  $ claude-code-agent template validate .claude-code-agent/project.yaml`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Checks a prompt (.md), a config (a folder), a workflow (.yaml), or a folder with prompts/, configs/ and ' +
        'workflows/, or a .claude-code-agent/project.yaml. Every problem is told with its file, line and column.',
    )
    .argument('<path>', 'file or folder; "-" is a workflow on standard input')
    .option('--json', 'one JSON document: {"templates", "problems"}')
    .addHelpText('after', example)
    .action((path, { json }) => context.run(() => validate(context, path, json === true)));
}

async function validate(context: Context, typed: string, json: boolean): Promise<Work> {
  if (typed === standardInput) return validatePiped(context, json);
  const path = resolve(context.cwd, typed);
  const checked = checkTemplates(context, path);
  if (!checked.ok) return checked;
  const { isFolder, templates, problems } = checked.value;
  const [first] = templates;
  const what = first?.kind === 'project' ? 'project file' : `${first?.kind} template`;
  const fine = isFolder ? `${plural(templates.length, 'template')} checked. No problems.` : `The ${what} is fine.`;
  return conclude(context, { source: briefPath(path), templates, problems, fine }, json);
}

async function validatePiped(context: Context, json: boolean): Promise<Work> {
  const text = await readPipedYaml(context);
  if (!text.ok) return text;
  const source = 'standard input';
  const file = { file: source, name: 'workflow', baseFolder: context.cwd };
  const problems = workflowTextProblems(context, file, text.value);
  const templates = [{ kind: 'workflow', path: standardInput }] as const;
  return conclude(context, { source, templates, problems, fine: 'The workflow template is fine.' }, json);
}

interface Shown extends Pick<Checked, 'templates' | 'problems'> {
  /** What was looked at, for the beginning of a sentence. */
  readonly source: string;
  /** What is said when there are no problems. */
  readonly fine: string;
}

function conclude({ stdout }: Context, { source, templates, problems, fine }: Shown, json: boolean): Work {
  if (json) {
    const checked = templates.map(({ kind, path }) => ({ kind, path }));
    stdout.line(safeJson({ templates: checked, problems: inOrder(problems) }, 2));
    return ok(problems.length === 0 ? exitCode.done : exitCode.usage);
  }
  if (problems.length > 0) return problemsFailure(safeLine(source, 400), problems);
  stdout.line(fine);
  return ok(exitCode.done);
}
