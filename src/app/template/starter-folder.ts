/** `template init`: creates a folder with example templates. */

import { dirname, join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import { briefPath, folderProblem, tryPath } from '../path-argument.ts';

/** Returns the paths of the new files. Fails with `usage` and `next` if the folder is not empty. */
export function makeStarterFolder({ files }: World, folder: string, next: string): Result<readonly string[]> {
  const brief = briefPath(folder);
  const stray = folderProblem(files, folder);
  if (stray !== null) return fail('usage', `${brief} ${stray}.`, next);
  const names = tryPath(() => files.list(folder));
  if (!names.ok) return fail('usage', `The folder ${brief} ${names.trouble}.`, next);
  if (names.value.length > 0) return fail('usage', `The folder ${brief} is not empty.`, next);
  try {
    for (const { path, text } of starterFiles) {
      const target = join(folder, path);
      files.makeFolder(dirname(target));
      files.writeBytes(target, new TextEncoder().encode(text));
    }
    return ok(starterFiles.map(({ path }) => path));
  } catch (error) {
    return { ok: false, failure: systemFailure(folder, error) };
  }
}

const prompt = `---
name: explain
description: Explain a part of the project to a newcomer
# Every {{name}} below has to stand in this list.
variables:
  - name: topic
    required: true
    description: What is to be explained
  - name: audience
    type: enum                  # string, number, boolean, enum, name, path or file (its contents)
    values: [newcomer, reviewer]
    default: newcomer
---

Explain {{topic}} in the project {{project.name}} to a {{audience}}.

Read the code first, and name the files and functions that matter. Change nothing.
End with the three things that would surprise the reader most.
`;

const about = `# What the template is for, and the variables of all its files.
description: Careful work with a short list of allowed commands
variables:
  - name: test_command
    default: npm test
    description: Runs the tests of the project
`;

const claudeMd = `# How to work here

- Make the smallest change that does the task.
- Run \`{{test_command}}\` before you say that you are done, and say what it printed.
- Never read or print secrets.
`;

const settings = `{
  "permissions": {
    "allow": ["Read", "Edit", "Bash({{test_command}})"],
    "deny": ["Read(./.env)", "Read(./.env.*)"]
  }
}
`;

const command = `---
description: Check the work before it is handed over
---

Run \`{{test_command}}\`. Then read your own diff once as a strict reviewer and correct what you find.
`;

const workflow = `# Try it:  claude-code-agent run two-steps --var topic="the build" --dry-run
version: 1
description: Explain something, then write it down
vars:
  topic: { required: true }
group:
  maxBudgetUsd: 5
sessions:
  explain:
    project: .
    template: explain
    vars: { topic: "{{topic}}" }
    permissionMode: plan
  write-down:
    project: .
    dependsOn: explain
    configTemplate: careful
    prompt: |
      Write what follows into docs/, as short as it can be without losing anything:

      {{sessions.explain.result}}
`;

export const starterFiles = [
  { path: 'prompts/explain.md', text: prompt },
  { path: 'configs/careful/config.yaml', text: about },
  { path: 'configs/careful/CLAUDE.md', text: claudeMd },
  { path: 'configs/careful/settings.json', text: settings },
  { path: 'configs/careful/commands/check.md', text: command },
  { path: 'workflows/two-steps.yaml', text: workflow },
];
