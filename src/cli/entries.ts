/**
 * Every command, with the words that call it and its one-line summary. The file that defines its options and does its
 * work is loaded only when the command line names it, so that short commands start fast.
 */
import type { Command } from '@commander-js/extra-typings';
import type { Context } from './context.ts';

export interface CommandModule {
  /** Gives the command its arguments, options, help and action. */
  define(command: Command, context: Context): void;
}

export interface Entry {
  /** The words that call the command. */
  readonly path: string;
  readonly summary: string;
  readonly hidden?: true;
  readonly load: () => Promise<CommandModule>;
}

export const listed: readonly Entry[] = [
  {
    path: 'group create',
    summary: 'create a session group and print its id',
    load: () => import('./commands/group/create.ts'),
  },
  {
    path: 'group edit',
    summary: 'change a group, or add what a workflow has more',
    load: () => import('./commands/group/edit.ts'),
  },
  { path: 'group list', summary: 'list session groups, newest first', load: () => import('./commands/group/list.ts') },
  {
    path: 'group show',
    summary: 'show a group, its sessions and what to do next',
    load: () => import('./commands/group/show.ts'),
  },
  {
    path: 'group graph',
    summary: 'print the dependency graph',
    load: () => import('./commands/group/graph.ts'),
  },
  {
    path: 'group plan',
    summary: 'show what a run would do and may cost',
    load: async () => ({ define: (await import('./commands/group/run.ts')).definePlan }),
  },
  { path: 'group run', summary: 'run a group, or go on with it', load: () => import('./commands/group/run.ts') },
  {
    path: 'group resume',
    summary: 'go on with a group and try its failed sessions again',
    load: () => import('./commands/group/resume.ts'),
  },
  {
    path: 'group watch',
    summary: 'follow a group that runs in another process',
    load: () => import('./commands/group/watch.ts'),
  },
  {
    path: 'group pause',
    summary: 'pause a group: now, after its running sessions, or for a short break',
    load: () => import('./commands/group/pause.ts'),
  },
  {
    path: 'group budget',
    summary: 'show what is spent, reserved and left, or raise the cap',
    load: () => import('./commands/group/budget.ts'),
  },
  {
    path: 'group why',
    summary: 'explain why sessions are not running',
    load: () => import('./commands/group/why.ts'),
  },
  {
    path: 'group report',
    summary: 'tell what became of a group, as HTML, Markdown or JSON',
    load: () => import('./commands/group/report.ts'),
  },
  {
    path: 'group diff',
    summary: 'show what the sessions changed in their worktrees',
    load: () => import('./commands/group/diff.ts'),
  },
  {
    path: 'group merge',
    summary: 'merge the work of all sessions, in every repository or in none',
    load: () => import('./commands/group/merge.ts'),
  },
  {
    path: 'group pr',
    summary: 'push the work of all sessions and create pull requests',
    load: () => import('./commands/group/pr.ts'),
  },
  {
    path: 'group copy',
    summary: 'the same group again, from its beginning or from a session on',
    load: () => import('./commands/group/copy.ts'),
  },
  { path: 'group archive', summary: 'put a finished group away', load: () => import('./commands/group/archive.ts') },
  {
    path: 'group prune',
    summary: 'delete groups by age, status and size',
    load: () => import('./commands/group/prune.ts'),
  },
  {
    path: 'group delete',
    summary: 'delete a group with its transcripts',
    load: () => import('./commands/group/delete.ts'),
  },
  {
    path: 'session add',
    summary: 'add a session to a group and print its id',
    load: () => import('./commands/session/add.ts'),
  },
  { path: 'session list', summary: 'list the sessions of a group', load: () => import('./commands/session/list.ts') },
  { path: 'session show', summary: 'show one session', load: () => import('./commands/session/show.ts') },
  {
    path: 'session diff',
    summary: 'show what a session changed in its worktree',
    load: () => import('./commands/session/diff.ts'),
  },
  {
    path: 'session edit',
    summary: 'change a session that is not running',
    load: async () => ({ define: (await import('./commands/session/add.ts')).defineEdit }),
  },
  {
    path: 'session allow',
    summary: 'allow a session what was denied, and try it again',
    load: () => import('./commands/session/allow.ts'),
  },
  {
    path: 'session remove',
    summary: 'remove a session that is not running',
    load: () => import('./commands/session/remove.ts'),
  },
  {
    path: 'session logs',
    summary: 'read the transcript of a session',
    load: () => import('./commands/session/logs.ts'),
  },
  { path: 'session pause', summary: 'pause one session', load: () => import('./commands/session/pause.ts') },
  {
    path: 'session resume',
    summary: 'go on with a paused session',
    load: () => import('./commands/session/resume.ts'),
  },
  { path: 'session retry', summary: 'try a failed session again', load: () => import('./commands/session/retry.ts') },
  {
    path: 'session attach',
    summary: 'open the conversation of a session in claude',
    load: () => import('./commands/session/attach.ts'),
  },
  { path: 'session say', summary: 'tell a session something', load: () => import('./commands/session/say.ts') },
  {
    path: 'template list',
    summary: 'list templates, where they come from and what they hide',
    load: () => import('./commands/template/list.ts'),
  },
  {
    path: 'template show',
    summary: 'show a template, its variables and its files',
    load: () => import('./commands/template/show.ts'),
  },
  {
    path: 'template validate',
    summary: 'check a template, or a folder of templates',
    load: () => import('./commands/template/validate.ts'),
  },
  {
    path: 'template render',
    summary: 'fill in a template and print it',
    load: () => import('./commands/template/render.ts'),
  },
  {
    path: 'template init',
    summary: 'make a folder with an example of each kind of template',
    load: () => import('./commands/template/init.ts'),
  },
  {
    path: 'template add',
    summary: 'fetch a pack of templates from a git repository',
    load: () => import('./commands/template/add.ts'),
  },
  {
    path: 'template update',
    summary: 'fetch installed packs again',
    load: () => import('./commands/template/update.ts'),
  },
  { path: 'template remove', summary: 'remove an installed pack', load: () => import('./commands/template/remove.ts') },
  {
    path: 'cpm list',
    summary: 'list the progress files of a project',
    load: () => import('./commands/context/cpm-list.ts'),
  },
  { path: 'cpm show', summary: 'print a progress file', load: () => import('./commands/context/cpm-show.ts') },
  {
    path: 'cpm clean',
    summary: 'remove progress files of sessions that were given up',
    load: () => import('./commands/context/cpm-clean.ts'),
  },
  {
    path: 'cpm check-skills',
    summary: 'check CPM skills, and put the shared section into them',
    load: () => import('./commands/context/cpm-check-skills.ts'),
  },
  {
    path: 'hook install',
    summary: 'put our hooks into the settings of a project or of a config dir',
    load: () => import('./commands/context/hook-install.ts'),
  },
  {
    path: 'hook uninstall',
    summary: 'take our hooks out again',
    load: () => import('./commands/context/hook-uninstall.ts'),
  },
  {
    path: 'hook status',
    summary: 'show which hooks are there and whether they can run',
    load: () => import('./commands/context/hook-status.ts'),
  },
  {
    path: 'handover init',
    summary: 'make a project that sessions find again',
    load: () => import('./commands/context/handover-init.ts'),
  },
  {
    path: 'handover list',
    summary: 'list the projects of a folder',
    load: () => import('./commands/context/handover-list.ts'),
  },
  {
    path: 'handover find',
    summary: 'find the project of a session',
    load: () => import('./commands/context/handover-find.ts'),
  },
  {
    path: 'faber start',
    summary: 'begin a FABER run for a work item',
    load: () => import('./commands/context/faber-start.ts'),
  },
  {
    path: 'faber resume',
    summary: 'make a run the active one again',
    load: () => import('./commands/context/faber-resume.ts'),
  },
  {
    path: 'faber status',
    summary: 'show the active run, its phases and sessions',
    load: () => import('./commands/context/faber-status.ts'),
  },
  { path: 'faber phase', summary: 'record a finished phase', load: () => import('./commands/context/faber-phase.ts') },
  {
    path: 'faber prime-context',
    summary: 'print the critical artifacts of the active run',
    load: () => import('./commands/context/faber-prime-context.ts'),
  },
  {
    path: 'faber session-end',
    summary: 'record the end of a session',
    load: () => import('./commands/context/faber-session-end.ts'),
  },
  {
    path: 'faber worktrees',
    summary: 'list the work trees of runs, or remove those that are over',
    load: () => import('./commands/context/faber-worktrees.ts'),
  },
  {
    path: 'fleet init',
    summary: 'make a fleet of machines, and print how they join',
    load: () => import('./commands/fleet/init.ts'),
  },
  {
    path: 'fleet join-line',
    summary: 'print the line with which a machine joins',
    load: async () => ({ define: (await import('./commands/fleet/init.ts')).defineJoinLine }),
  },
  {
    path: 'host join',
    summary: 'let this machine work for a fleet',
    load: () => import('./commands/host/join.ts'),
  },
  { path: 'host add', summary: 'let another machine join, by ssh', load: () => import('./commands/host/add.ts') },
  {
    path: 'host list',
    summary: 'list the machines of the fleet, and how they stand',
    load: () => import('./commands/host/list.ts'),
  },
  {
    path: 'host drain',
    summary: 'let a machine take nothing new',
    load: () => import('./commands/host/drain.ts'),
  },
  {
    path: 'host resume',
    summary: 'let a machine take sessions again',
    load: async () => ({ define: (await import('./commands/host/drain.ts')).defineResume }),
  },
  {
    path: 'host forget',
    summary: 'take a machine out of the fleet',
    load: () => import('./commands/host/forget.ts'),
  },
  {
    path: 'host serve',
    summary: 'run the agent of this machine here',
    load: () => import('./commands/host/serve.ts'),
  },
  {
    path: 'try',
    summary: 'see a group at work: a rehearsal in the dashboard, at no cost',
    load: () => import('./commands/try.ts'),
  },
  {
    path: 'init',
    summary: 'write a first workflow over the projects nearby',
    load: () => import('./commands/init.ts'),
  },
  {
    path: 'run',
    summary: 'create the group of a workflow and run it',
    load: () => import('./commands/run.ts'),
  },
  {
    path: 'rm',
    summary: 'delete groups',
    load: async () => ({ define: (await import('./commands/group/delete.ts')).defineRemove }),
  },
  { path: 'stop', summary: 'pause every group on this machine', load: () => import('./commands/stop.ts') },
  {
    path: 'config',
    summary: 'show every setting and where it comes from, or change one',
    load: () => import('./commands/config.ts'),
  },
  {
    path: 'doctor',
    summary: 'diagnose this machine and suggest fixes',
    load: () => import('./commands/doctor.ts'),
  },
  { path: 'completion', summary: 'print a shell completion script', load: () => import('./commands/completion.ts') },
  {
    path: 'rehearsal-serve',
    summary: 'serve the scripted Messages API',
    hidden: true,
    load: () => import('./commands/rehearsal-serve.ts'),
  },
];
