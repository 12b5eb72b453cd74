/** Right words at the wrong moment: commands on groups and sessions that are not in a status for them. */
import type { Ground } from './ground.ts';
import { type Mistake, mistake } from './mistake.ts';

const nothing = /^$/;

export function wrongMoments(ground: Ground): readonly Mistake[] {
  const id = (slug: string): string => ground.groups.find((group) => group.endsWith(`-${slug}`)) as string;
  const create = 'Create a new group';
  const run = (slug: string): string => `claude-code-agent group run ${id(slug)}`;
  const addOne = `Add one with: claude-code-agent session add ${id('empty')} --project DIR --prompt TEXT`;
  const deleteIt = (slug: string): string => `claude-code-agent group delete ${id(slug)}`;
  const faber = ['group', 'create', 'x', '--from', 'faber', '--var', 'work=Reset a password by mail', '--var'];
  return [
    // It ends up in names of files and in command lines that the sessions are told.
    mistake([...faber, 'work_id=../x'], 2, '"../x" is not a plain name', 'nothing was started'),
    mistake([...faber, 'work_id=$(id)'], 2, '"$(id)" is not a plain name', 'nothing was started'),
    mistake(['group', 'run', 'empty'], 2, `Group ${id('empty')} has no sessions`, addOne),
    mistake(['group', 'resume', 'empty'], 2, `Group ${id('empty')} has no sessions`, addOne),
    mistake(['group', 'run', 'empty', '--rehearse'], 2, `Group ${id('empty')} has no sessions`, addOne),
    mistake(['group', 'run', 'old'], 1, `Group ${id('old')} is archived`, create),
    mistake(['group', 'resume', 'old'], 1, `Group ${id('old')} is archived`, create),
    mistake(['group', 'run', 'broken'], 1, `Group ${id('broken')} failed`, '--retry-failed'),
    mistake(['group', 'run', 'lost'], 1, 'on the host elsewhere', 'Run the command on elsewhere'),
    mistake(['group', 'run', 'held', '--rehearse'], 2, 'was started for real', 'Leave out --rehearse'),
    mistake(['group', 'run', 'done'], 0, `Group ${id('done')} is already completed`, 'already completed', {
      shows: nothing,
    }),
    mistake(['group', 'archive', 'auth'], 1, `Group ${id('auth')} is created`, deleteIt('auth')),
    mistake(['group', 'archive', 'empty'], 1, `Group ${id('empty')} is created`, deleteIt('empty')),
    mistake(['group', 'archive', 'lost'], 1, `Group ${id('lost')} is running`, run('lost')),
    mistake(['group', 'archive', 'old'], 0, `Group ${id('old')} is already archived`, 'already', { shows: nothing }),
    ...['auth', 'done', 'lost', 'old', id('held')].map((group) =>
      mistake(['group', 'delete', group], 2, 'there is no terminal', 'Give --force'),
    ),
    ...['run', 'resume', 'archive'].map((name) =>
      mistake(['group', name, 'live'], 4, `group ${id('live')} is in use by process`, `group watch ${id('live')}`),
    ),
    mistake(['group', 'delete', 'live'], 4, `group ${id('live')} is in use by`, `${deleteIt('live')} --force`),
    mistake(['session', 'remove', 'auth/api'], 2, '001 api is needed by 002 web', 'Remove those first'),
    mistake(['session', 'remove', 'broken/one', '--force'], 2, '001 one is needed by 002 two', 'Remove those first'),
    mistake(['session', 'remove', 'lost/one', '--force'], 1, '001 one is running', `session pause ${id('lost')}/one`),
    mistake(['session', 'remove', 'old/one', '--force'], 1, `Group ${id('old')} is archived`, deleteIt('old')),
    mistake(['session', 'remove', 'held/one'], 2, 'Delete session 001 one with its transcript?', 'Give --force'),
    mistake(['session', 'add', 'old', '--project', '.', '--prompt', 'x'], 1, `Group ${id('old')} is archived`, create),
    mistake(['session', 'logs', 'auth/api'], 0, '001 api has not printed anything', 'yet', { shows: nothing }),
    mistake(['session', 'logs', 'auth/api', '--raw'], 0, '001 api has not printed', 'yet', { shows: nothing }),
    mistake(['group', 'watch', 'lost'], 3, `runner of ${id('lost')} is gone`, run('lost'), { shows: '001 one' }),
  ];
}
