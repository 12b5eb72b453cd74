/** The differences between a session and plain claude that docs/parity.md allows, as patterns of what the test sees. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutRoot } from '../cli.ts';

export interface AllowedDifference {
  /** The heading in docs/parity.md. */
  readonly where: string;
  /** How the item below it begins. */
  readonly item: string;
  /**
   * As in `differences`: `+` for what only a session has, `-` for what only plain claude has, `~` for what differs; `*`
   * matches any text.
   */
  readonly patterns: readonly string[];
}

/** The items of docs/parity.md by heading. */
export function documentedDifferences(): Pick<AllowedDifference, 'where' | 'item'>[] {
  const sections = readFileSync(join(checkoutRoot, 'docs/parity.md'), 'utf8').split(/^### /m).slice(1);
  return sections.flatMap((section) => {
    const [where = ''] = section.split('\n', 1);
    return [...section.matchAll(/^- \*\*(.+?)\*\* \S/gm)].map(([, item = '']) => ({ where, item }));
  });
}

export function fits(pattern: string, difference: string): boolean {
  const source = pattern.split('*').map(RegExp.escape).join('.*');
  return new RegExp(`^${source}$`, 's').test(difference);
}

export const headings = {
  everywhere: 'Everywhere',
  inWorktree: 'In a worktree',
  withoutInherit: 'Without `inherit: user`',
  withInherit: 'With `inherit: user`',
};

export const allowedDifferences: readonly AllowedDifference[] = [
  {
    where: headings.everywhere,
    item: 'The permission mode',
    patterns: ['~ init.permissionMode'],
  },
  {
    where: headings.everywhere,
    item: 'Denied calls',
    patterns: ['~ refused *'],
  },
  {
    where: headings.everywhere,
    item: '`ScheduleWakeup` and cron tools',
    patterns: ['- tool ScheduleWakeup', '- init.tools ScheduleWakeup', '- init.tools Cron*', '- listed Cron*'],
  },
  {
    where: headings.everywhere,
    item: 'Task tools',
    patterns: ['+ init.tools Task*', '+ listed Task*', '+ message: The task tools *'],
  },
  {
    where: headings.everywhere,
    item: 'Background commands',
    patterns: ['~ tool Agent', '~ tool Bash'],
  },
  {
    where: headings.everywhere,
    item: 'The first line of the system prompt',
    patterns: ['- system: You are a Claude agent, *', '+ system: You are Claude Code, *'],
  },
  {
    where: headings.everywhere,
    item: 'Folder-specific text',
    patterns: [
      '- system: # Session-specific guidance',
      '~ system: # Environment',
      '- system: # Memory',
      '+ message: # Memory',
      '+ message: This is ambient context*',
      '- message: As you answer *',
    ],
  },
  {
    where: headings.everywhere,
    item: 'Git instructions',
    patterns: ['- message: # gitStatus', '- message: Attribution for git commits *', '+ system: ## Git'],
  },
  {
    where: headings.everywhere,
    item: 'The group, the task and the saved state',
    patterns: [
      '+ system: # Sessions of a session runner',
      '+ system: ## State Management',
      '~ message: Contents of CONFIG/CLAUDE.md *',
      '+ message: # Session *',
      '+ message: ## Your *',
      '+ message: ## Instructions for every session',
      '+ message: SessionStart:startup hook success: *',
    ],
  },
  {
    where: headings.everywhere,
    item: 'Approved MCP servers',
    patterns: ['~ init.mcp_servers *', '~ message: The following MCP servers are configured but failed *'],
  },
  {
    where: headings.everywhere,
    item: 'Unapproved MCP servers',
    patterns: ['* mcp__unapproved__probe*', '- init.mcp_servers unapproved', '- ran mcp unapproved *'],
  },
  {
    where: headings.inWorktree,
    item: 'Nested worktrees',
    patterns: ['- listed E*Worktree', '- init.tools E*Worktree'],
  },
  {
    where: headings.inWorktree,
    item: '`CLAUDE.local.md`',
    patterns: ['* message: Contents of PROJECT/CLAUDE.local.md *'],
  },
  {
    where: headings.inWorktree,
    item: 'Folder and branch',
    patterns: ['~ message: # Environment'],
  },
  {
    where: headings.inWorktree,
    item: 'The memory of claude',
    patterns: ['~ init.memory_paths'],
  },
  {
    where: headings.withoutInherit,
    item: 'Your configuration',
    patterns: [
      '- listed - user-*',
      '- listed mcp__user-server__probe',
      '- listed mcp__local-server__probe',
      '- init.* user-*',
      '- init.* mcp__user-server__probe',
      '- init.* mcp__local-server__probe',
      '- init.mcp_servers local-server',
      '- ran mcp *-server *',
      '- ran hook of the user *',
      '- ran user *',
      '- message: Contents of CONFIG/rules/*',
      '* USER * in PROJECT',
      '* Bash {"command":"sh note.sh user"}',
      '* mcp__user-server__probe {}',
      '* mcp__local-server__probe {}',
    ],
  },
  {
    where: headings.withInherit,
    item: 'Your files',
    patterns: ['- message: Contents of CONFIG/rules/*', '+ message: Contents of HOME/.claude/*'],
  },
];
