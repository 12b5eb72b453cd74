/** The options that say what is generated into a session's config dir, and what comes of them. */
import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { briefPath } from '../../app/path-argument.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionConfig } from '../../core/group.ts';
import { findObjectFault } from '../../store/json-places.ts';
import { readTextFile } from '../../template/text-file.ts';
import type { Context } from '../context.ts';
import { readStandardInput, standardInput } from './prompt-source.ts';

const overrideBytesMax = 1024 * 1024;

/** As commander gives them. */
export interface ConfigOptions {
  readonly generateClaudeMd?: boolean | undefined;
  readonly generateSettings?: boolean | undefined;
  readonly generateCommands?: boolean | undefined;
  readonly generateMcp?: boolean | undefined;
  readonly inheritFromGroup?: boolean | undefined;
  readonly settingsOverride?: string | undefined;
  readonly claudeMdTemplate?: string | undefined;
}

/** Adds the options to a command. */
export function withConfigOptions<Args extends unknown[], Given extends Record<string, unknown>>(
  command: Command<Args, Given>,
) {
  return command
    .option('--generate-claude-md', 'a CLAUDE.md that tells group, task and dependencies (default)')
    .option('--no-generate-claude-md', 'no CLAUDE.md; what templates say goes into the system prompt')
    .option('--generate-settings', "the config template's settings.json counts (default)")
    .option('--no-generate-settings', 'it does not')
    .option('--generate-commands', "the config template's commands, skills, agents and rules count (default)")
    .option('--no-generate-commands', 'they do not')
    .option('--generate-mcp', "the config template's MCP servers are started (default)")
    .option('--no-generate-mcp', 'they are not')
    .option('--inherit-from-group', "shared-config and the group's config template count (default)")
    .option('--no-inherit-from-group', 'they do not')
    .option('--settings-override <json>', 'settings merged over those of the templates; JSON, a file with it, or "-"')
    .option('--claude-md-template <name>', "prompt template or file that replaces the config template's CLAUDE.md");
}

/** What the options come to; empty when none was given. Reads only. Fails with `usage`. */
export async function configOf(context: Context, given: ConfigOptions): Promise<Result<SessionConfig>> {
  const { generateClaudeMd, generateSettings, generateCommands, generateMcp, inheritFromGroup } = given;
  const { settingsOverride: typed, claudeMdTemplate } = given;
  const override = typed === undefined ? ok(undefined) : await settingsIn(context, typed);
  if (!override.ok) return override;
  return ok(
    defined({
      generateClaudeMd,
      generateSettings,
      generateCommands,
      generateMcpConfig: generateMcp,
      inheritFromGroup,
      claudeMdTemplate,
      settingsOverride: override.value,
    }),
  );
}

/** A text that begins with "{" is JSON itself, any other but "-" is the path of a file. */
async function settingsIn(context: Context, typed: string): Promise<Result<Readonly<Record<string, unknown>>>> {
  const next =
    'Give a JSON object such as \'{"permissions": {"deny": ["WebFetch"]}}\', or the path of a file with one.';
  if (typed.trimStart().startsWith('{')) return objectIn(typed, 'The JSON of --settings-override', next);
  if (typed === standardInput) {
    const bytes = await readStandardInput(context, 'The settings', overrideBytesMax);
    return bytes.ok ? objectIn(Buffer.from(bytes.value).toString(), 'The JSON on standard input', next) : bytes;
  }
  const path = resolve(context.cwd, typed);
  const read = readTextFile(context.world, path, overrideBytesMax);
  if (!read.ok) return fail('usage', `The file of --settings-override ${briefPath(path)} ${read.trouble}.`, next);
  return objectIn(read.text, `The file of --settings-override ${briefPath(path)}`, next);
}

function objectIn(text: string, source: string, next: string): Result<Readonly<Record<string, unknown>>> {
  const fault = findObjectFault(text);
  if (fault !== null)
    return fail('usage', `${source} is wrong at character ${fault.offset + 1}: ${fault.message}.`, next);
  const value: unknown = JSON.parse(text);
  return isObject(value) ? ok(value) : fail('usage', `${source} is no JSON object.`, next);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
