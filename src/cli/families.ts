/** The families of commands, with what their help says besides the list of their commands. */
import { programName } from '../core/program-name.ts';

interface Family {
  readonly summary: string;
  /** What its commands do not say. */
  readonly note?: string;
  readonly example: string;
}

export const families: Readonly<Record<string, Family>> = {
  group: {
    summary: 'create, run, watch and tidy up session groups',
    example: `  $ ${programName} group create auth-refactor --max-budget-usd 10
  $ ${programName} group run auth-refactor`,
  },
  session: {
    summary: 'add, read and remove the sessions of a group',
    example: `  $ ${programName} session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ ${programName} session add auth-refactor --project ./web --prompt "Add a login page" --depends-on api
  $ ${programName} session logs auth-refactor/api`,
  },
  template: {
    summary: 'find, check, try out and share templates of prompts, configs and workflows',
    example: `  $ ${programName} template list
  $ ${programName} template render code-review --var file_path=src/main.ts
  $ ${programName} template init .claude-code-agent/templates`,
  },
  fleet: {
    summary: 'let several machines work on the sessions of groups',
    example: `  $ ${programName} fleet init --redis redis://127.0.0.1:6379
  $ ${programName} host add gpu1 --ssh me@gpu1 --slots 8 --label gpu --login team-a`,
  },
  host: {
    summary: 'add, look at and take out the machines of a fleet',
    example: `  $ ${programName} host add gpu1 --ssh me@gpu1 --slots 8 --label gpu --login team-a
  $ ${programName} host list
  $ ${programName} host forget gpu1`,
  },
  faber: {
    summary: 'carry a FABER run through its phases, sessions and machines',
    example: `  $ ${programName} faber start --work-id 258
  $ ${programName} faber phase frame
  $ ${programName} faber status`,
  },
  cpm: {
    summary: 'look at and tidy up the progress files of a project',
    example: `  $ ${programName} cpm list --project ./api
  $ ${programName} cpm clean --project ./api`,
  },
  hook: {
    summary: 'put the context hooks into your own settings, or take them out',
    note: `
What a hook runs. It reads claude's JSON on standard input and always ends with 0:
  ${programName} hook <task|cpm|faber|handover|all> <session-start|pre-compact|session-end>
                         [--source <source>]
`,
    example: `  $ ${programName} hook install --project ./api
  $ ${programName} hook status --project ./api`,
  },
  handover: {
    summary: 'projects that a later session takes up where the last one stopped',
    example: `  $ ${programName} handover init 02-projects/28-parser
  $ ${programName} handover list`,
  },
};

export const example = `
Example:
  $ ${programName} group create auth-refactor --max-budget-usd 10
  $ ${programName} session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ ${programName} session add auth-refactor --project ./web --prompt "Add a login page" --depends-on api
  $ ${programName} group run auth-refactor`;
