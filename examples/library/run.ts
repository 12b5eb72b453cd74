/**
 * The group of examples/cross-project-refactor from a program of one's own: run.ts DIR, where DIR has been made by
 * setup.sh of that example. It is paused in the middle and goes on; nothing is paid, for the model is scripted.
 */
import { SessionGroup, SessionGroupRunner } from 'claude-code-agent';

const [folder = '.'] = process.argv.slice(2);
const script = `${import.meta.dir}/../cross-project-refactor/rehearsal.yaml`;

const group = await SessionGroup.create({
  slug: 'from-a-program',
  name: 'Cross-Project Auth Refactor',
  config: { model: 'opus', maxBudgetUsd: 10 },
});
const allowedTools = ['Bash(node:*)'];
const add = (name: string, project: string, prompt: string, dependsOn: readonly { id: string }[] = []) =>
  group.add({ name, projectPath: `${folder}/${project}`, prompt, dependsOn, allowedTools });

const auth = await add('auth-module', 'project-a', 'Implement an auth module that keeps salted hashes.');
const library = await add('shared-library', 'project-b', 'Add a comparison in constant time to the library.');
const login = await add('integration', 'project-a', 'Use both of them in the login.', [auth, library]);
await add('documentation', 'project-c', 'Bring the handbook up to date.', [login]);

const runner = new SessionGroupRunner({ rehearse: script });
const run = runner.start(group, { maxConcurrent: 2 });
for await (const event of run.events) {
  console.log(event.type, 'sessionId' in event ? event.sessionId?.slice(0, 3) : '');
  // Not waited for here: it is done when the run has ended, and its last events are still to come.
  if (event.type === 'session_identified' && event.sessionId === auth.id) void group.pause();
}
console.log('first run:', (await run.result).status);

const result = await runner.resume(group);
console.log('second run:', result?.status);
for (const { name, status, cost } of result?.sessions ?? []) console.log(`  ${name}: ${status}, $${cost.toFixed(2)}`);
console.log(`in all: $${result?.progress.totalCost.toFixed(2)}`);
