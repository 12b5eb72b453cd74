/** `group report`: results of a group as one HTML file, as Markdown for a pull request, or as JSON. */
import { dirname, resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { tryPath } from '../../../app/path-argument.ts';
import { loadReport } from '../../../app/report.ts';
import { resolveGroup } from '../../../app/resolve.ts';
import { quoted } from '../../../core/id.ts';
import { pageStart } from '../../../view/html/markup.ts';
import { type Context, need, refuse } from '../../context.ts';

const example = `
Example:
  $ claude-code-agent group report auth-refactor --html report.html
  $ claude-code-agent group report auth-refactor --markdown | gh pr create --body-file - --title "Auth"
  $ claude-code-agent group report auth-refactor --json | jq '.sessions[] | {title, status, costUsd}'`;

export function define(command: Command, context: Context): void {
  command
    .description(
      `Write a report on a group: results, changes, failures with next steps, waits,
cost and tokens. The HTML file is self-contained. The default format is
Markdown.`,
    )
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(
      new Option('--html <file>', 'write one self-contained HTML file ("-" = standard output)').conflicts([
        'markdown',
        'json',
      ]),
    )
    .addOption(new Option('--markdown', 'print Markdown, for the body of a pull request').conflicts('json'))
    .option('--json', 'one JSON document: the data of the report')
    .option('--force', 'with --html: overwrite a file that is not a report')
    .addHelpText('after', example)
    .action((reference, { html, json, force }) =>
      context.run(async () => {
        const { stdout, world } = context;
        const { state, model } = need(await loadReport(world, need(resolveGroup(context, reference))));
        if (json) return stdout.json(model);
        if (html === undefined) {
          const { reportMarkdown } = await import('../../../view/markdown.ts');
          return stdout.write(reportMarkdown(state, model));
        }
        // Loaded on demand, because the graph layout library is large.
        const { reportPage } = await import('../../../view/html/page.ts');
        const page = reportPage(state, model);
        if (html === '-') return stdout.write(page);
        const path = resolve(context.cwd, html);
        checkPageTarget(context, path, force === true);
        world.files.writeAtomic(path, page);
        stdout.line(path);
      }),
    );
}

/** Refuses to overwrite a file that is not a page of this program, unless `force`. */
export function checkPageTarget({ world }: Context, path: string, force: boolean): void {
  const shown = quoted(path);
  const next = 'Give --html a file in an existing folder.';
  const folder = tryPath(() => world.files.info(dirname(path)));
  if (!folder.ok) refuse('usage', `The folder of ${shown} ${folder.trouble}.`, next);
  if (folder.value?.kind !== 'folder') refuse('usage', `The folder of ${shown} does not exist.`, next);
  const there = tryPath(() => world.files.info(path));
  if (!there.ok) refuse('usage', `The path ${shown} ${there.trouble}.`, next);
  if (there.value === null) return;
  if (there.value.kind !== 'file') refuse('usage', `${shown} is not a regular file.`, next);
  if (force || there.value.size === 0) return;
  const head = tryPath(() => world.files.readBytes(path, 0, pageStart.length));
  const isReport = head.ok && new TextDecoder().decode(head.value) === pageStart;
  if (isReport) return;
  refuse('usage', `${shown} exists and is not a report.`, 'Give another name, or overwrite it with --force.');
}
