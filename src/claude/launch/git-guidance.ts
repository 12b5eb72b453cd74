/**
 * What a session is told about Git. claude's own words come with a snapshot of the status, taken anew by every process
 * and placed before the conversation: after a resume in a project that has changed, nothing of the conversation could
 * be read from the prompt cache. So they are switched off, and what they say is said by us, without the
 * snapshot, for which the session can ask Git.
 */
import { type JsonObject, object } from '../lenient.ts';

/** Switches claude's own words off, the snapshot with them. */
export const withoutOwnGitWords: JsonObject = { includeGitInstructions: false };

/** For CLAUDE.md: sub-agents see that, but not the end of the system prompt, and do what harms most. */
export const gitForSubagents =
  'Sub-agents commit, push and switch branches only where their task says so, and run no Git that opens an editor.';

/** For the system prompt; null when a template or the session has decided whether claude's own words are wanted. */
export function gitGuidance(settings: JsonObject): string | null {
  if (settings.includeGitInstructions !== undefined) return null;
  const { commit, pr } = object(settings.attribution);
  return [
    '- Ask Git itself for the branch, the status and the history: nothing of it is told in advance.',
    '- Options that open an editor or ask questions (`git rebase -i`, `git add -i`) do not work here.',
    '- Use the `gh` CLI for GitHub (pull requests, issues, API).',
    '- Commit or push only when you are asked to. If on the default branch, branch first.',
    '- Sub-agents do not see these lines: tell one that is to commit what it needs of them.',
    ...attribution('commit messages', commit, 'Co-Authored-By: Claude <noreply@anthropic.com>', settings),
    ...attribution('pull requests', pr, '🤖 Generated with [Claude Code](https://claude.com/claude-code)', settings),
  ].join('\n');
}

/** What claude would ask for; the same settings change it or switch it off. */
function attribution(place: string, wanted: unknown, usual: string, { includeCoAuthoredBy }: JsonObject): string[] {
  const text = typeof wanted === 'string' ? wanted : includeCoAuthoredBy === false ? '' : usual;
  if (text.trim() === '') return [];
  const lines = text.trim().split('\n');
  return [`- Unless the project does it otherwise, end ${place} with:`, ...lines.map((line) => `  ${line}`)];
}
