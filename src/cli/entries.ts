/** All commands: name, summary and module, which is loaded only when the command line names the command. */
import type { Command } from '@commander-js/extra-typings';
import type { Context } from './context.ts';

export type Define = (command: Command, context: Context) => void;

/** `isHidden`: help does not list the command. */
export type CommandEntry = readonly [path: string, summary: string, load: () => Promise<Define>, isHidden?: true];

/** Commands whose group defaults to the latest: they only show it, or name it before they change anything. */
const ofLatest = /^(?:review|group (?:show|graph|plan|watch|budget|why|diff|merge|pr|report)|session (?:list))$/;

export const latest = '@';

export async function defineEntry([path, , load]: CommandEntry, command: Command, context: Context): Promise<void> {
  (await load())(command, context);
  if (ofLatest.test(path)) command.registeredArguments[0]?.argOptional().default(latest, 'the group created last');
}

function from<Name extends string>(load: () => Promise<Readonly<Record<Name, Define>>>, name: Name): CommandEntry[2] {
  return async () => (await load())[name];
}

const make = () => import('./commands/group/create.ts');
const look = () => import('./commands/group/show.ts');
const run = () => import('./commands/group/run.ts');
const pause = () => import('./commands/group/pause.ts');
const allow = () => import('./commands/allow.ts');
const inbox = () => import('./commands/inbox.ts');
const deliver = () => import('./commands/group/deliver.ts');
const remove = () => import('./commands/group/remove.ts');
const diff = () => import('./commands/diff.ts');
const define = () => import('./commands/session/add.ts');
const sessionLook = () => import('./commands/session/show.ts');
const control = () => import('./commands/session/control.ts');
const templates = () => import('./commands/template/templates.ts');
const cpm = () => import('./commands/context/cpm.ts');
const hook = () => import('./commands/context/hook.ts');
const handover = () => import('./commands/context/handover.ts');
const faber = () => import('./commands/context/faber.ts');
const watch = () => import('./commands/group/watch.ts');
const attach = () => import('./commands/session/attach.ts');
const config = () => import('./commands/config.ts');
const tryOut = () => import('./commands/try.ts');
const hosts = () => import('./commands/host/hosts.ts');

export const commandEntries: readonly CommandEntry[] = [
  ['group create', 'create a session group and print its id', from(make, 'defineCreate')],
  ['group edit', 'change a group, or add sessions from a workflow', from(make, 'defineGroupEdit')],
  ['group allow', 'allow denied calls of all sessions, and retry them', from(allow, 'defineGroupAllow')],
  ['group list', 'list session groups, newest first', from(look, 'defineGroupList')],
  ['group show', 'show a group, its sessions and what to do next', from(look, 'defineGroupShow')],
  ['group graph', 'print the dependency graph', from(look, 'defineGraph')],
  ['group plan', 'show what a run would do and may cost', from(run, 'definePlan')],
  ['group run', 'run or continue a group', from(run, 'defineGroupRun')],
  ['group resume', 'resume a group and retry its failed sessions', from(run, 'defineGroupResume')],
  ['group watch', 'follow a group that runs in another process', from(watch, 'define')],
  ['group pause', 'pause a group', from(pause, 'defineGroupPause')],
  ['group budget', 'show what is spent, reserved and left, or raise the cap', from(look, 'defineBudget')],
  ['group why', 'explain why sessions are not running', from(look, 'defineWhy')],
  ['group report', 'write a report as HTML, Markdown or JSON', from(look, 'defineReport')],
  ['group diff', 'show what the sessions changed in their worktrees', from(diff, 'defineGroupDiff')],
  ['group merge', 'merge the work of all sessions, in all repositories or none', from(deliver, 'defineMerge')],
  ['group pr', 'push the work of all sessions and create pull requests', from(deliver, 'definePr')],
  ['group copy', 'copy a group, to run it again in whole or in part', from(make, 'defineCopy')],
  ['group archive', 'archive a finished group', from(remove, 'defineArchive')],
  ['group prune', 'delete groups by age, status and size', from(remove, 'definePrune')],
  ['group delete', 'delete a group with its transcripts', from(remove, 'defineDelete')],
  ['session add', 'add a session to a group and print its id', from(define, 'define')],
  ['session list', 'list the sessions of a group', from(sessionLook, 'defineSessionList')],
  ['session show', 'show one session', from(sessionLook, 'defineSessionShow')],
  ['session diff', 'show what a session changed in its worktree', from(diff, 'defineSessionDiff')],
  ['session edit', 'change a session that is not running', from(define, 'defineEdit')],
  ['session allow', 'allow denied calls of a session, and retry it', from(allow, 'defineSessionAllow')],
  ['session remove', 'remove a session that is not running', from(control, 'defineRemoveSession')],
  ['session logs', 'read the transcript of a session', from(sessionLook, 'defineLogs')],
  ['session pause', 'pause one session', from(control, 'definePause')],
  ['session resume', 'resume a paused session', from(control, 'defineSessionResume')],
  ['session retry', 'retry a failed session, or give a completed one a further task', from(control, 'defineRetry')],
  ['session attach', 'open the conversation of a session in claude', from(attach, 'define')],
  ['session say', 'send a message to a session', from(control, 'defineSay')],
  ['template list', 'list templates and their sources', from(templates, 'defineTemplateList')],
  ['template show', 'show a template, its variables and its files', from(templates, 'defineTemplateShow')],
  ['template validate', 'check a template, or a folder of templates', from(templates, 'defineTemplateValidate')],
  ['template render', 'fill in a template and print it', from(templates, 'defineTemplateRender')],
  ['template init', 'create a folder with an example of each kind of template', from(templates, 'defineTemplateInit')],
  ['template add', 'fetch a pack of templates from a git repository', from(templates, 'definePackAdd')],
  ['template update', 'fetch installed packs again', from(templates, 'definePackUpdate')],
  ['template remove', 'remove an installed pack', from(templates, 'definePackRemove')],
  ['cpm list', 'list the progress files of a project', from(cpm, 'defineCpmList')],
  ['cpm show', 'print a progress file', from(cpm, 'defineShow')],
  ['cpm clean', 'remove progress files of abandoned sessions', from(cpm, 'defineClean')],
  ['cpm check-skills', 'check CPM skills, and add the shared section', from(cpm, 'defineCheckSkills')],
  ['hook install', 'install the context hooks in a project or config dir', from(hook, 'defineInstall')],
  ['hook uninstall', 'remove the context hooks', from(hook, 'defineUninstall')],
  ['hook status', 'show installed hooks and whether they can run', from(hook, 'defineHookStatus')],
  ['handover init', 'create a project that later sessions continue', from(handover, 'defineInit')],
  ['handover list', 'list the projects of a folder', from(handover, 'defineHandoverList')],
  ['handover find', 'find the project of a session', from(handover, 'defineFind')],
  ['faber start', 'start a FABER run for a work item', from(faber, 'defineStart')],
  ['faber resume', 'make a run the active one again', from(faber, 'defineFaberResume')],
  ['faber status', 'show the active run, its phases and sessions', from(faber, 'defineFaberStatus')],
  ['faber phase', 'record a finished phase', from(faber, 'definePhase')],
  ['faber prime-context', 'print the critical artifacts of the active run', from(faber, 'definePrimeContext')],
  ['faber session-end', 'record the end of a session', from(faber, 'defineSessionEnd')],
  ['faber worktrees', 'list worktrees of runs, or remove finished ones', from(faber, 'defineWorktrees')],
  ['fleet init', 'create a fleet and print the line that hosts join with', from(hosts, 'defineFleetInit')],
  ['fleet join-line', 'print the line that hosts join with', from(hosts, 'defineJoinLine')],
  ['host join', 'make this machine a host of a fleet', from(hosts, 'defineJoin')],
  ['host add', 'add another host by ssh', from(hosts, 'defineHostAdd')],
  ['host list', 'list the hosts of the fleet and their state', from(hosts, 'defineHostList')],
  ['host drain', 'stop starting sessions on a host', from(hosts, 'defineDrain')],
  ['host resume', 'let a host take sessions again', from(hosts, 'defineHostResume')],
  ['host forget', 'remove a host from the fleet', from(hosts, 'defineForget')],
  ['host serve', 'run the agent of this host in the terminal', from(hosts, 'defineServe')],
  ['try', 'watch a demonstration in the dashboard, at no cost', from(tryOut, 'define')],
  ['init', 'write a first workflow for nearby projects', from(() => import('./commands/init.ts'), 'define')],
  ['run', 'create the group of a workflow and run it', from(run, 'defineRunWorkflow')],
  ['inbox', 'list requests and questions of sessions', from(inbox, 'defineInbox')],
  ['review', 'review the work of a group: decisions, then risks', from(() => import('./commands/review.ts'), 'define')],
  ['answer', 'answer an item of the inbox', from(inbox, 'defineAnswer')],
  ['rm', 'delete groups', from(remove, 'defineRemove')],
  ['stop', 'pause every group on this machine', from(pause, 'defineStop')],
  ['config', 'show every setting and where it comes from, or change one', from(config, 'define')],
  ['doctor', 'diagnose this machine and suggest fixes', from(() => import('./commands/doctor.ts'), 'define')],
  ['completion', 'print a shell completion script', from(() => import('./commands/completion.ts'), 'defineCompletion')],
  ['rehearsal-serve', 'serve the scripted Messages API', from(tryOut, 'defineRehearsalServe'), true],
];
