/** Promises: a message about a git failure contains the first line of git's output that names the cause. */
import { expect, test } from 'bun:test';
import { reasonIn } from '../../../src/git/git.ts';

test.each([
  [
    'an unknown key',
    'git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\n' +
      'Please make sure you have the correct access rights\nand the repository exists.\n',
    'git@github.com: Permission denied (publickey)',
  ],
  [
    'a missing repository',
    'ERROR: Repository not found.\nfatal: the remote end hung up unexpectedly\n',
    'Repository not found',
  ],
  [
    'a closed connection',
    'kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.1 port 22\n' +
      'fatal: Could not read from remote repository.\n',
    'kex_exchange_identification: Connection closed by remote host',
  ],
  [
    'a protected branch',
    'remote: \nremote: error: GH006: Protected branch update failed for refs/heads/main.        \n' +
      'remote: error: Changes must be made through a pull request.        \nTo github.com:a/b.git\n' +
      " ! [remote rejected] HEAD -> main (protected branch hook declined)\nerror: failed to push some refs to 'x'\n",
    'GH006: Protected branch update failed for refs/heads/main',
  ],
  [
    'a rejected non-fast-forward push',
    "To /srv/x.git\n ! [rejected]        HEAD -> x (fetch first)\nerror: failed to push some refs to '/srv/x.git'\n" +
      'hint: Updates were rejected because the remote contains work that you do not\n',
    '! [rejected]        HEAD -> x (fetch first)',
  ],
  [
    'a push too large for a proxy',
    'error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413\n' +
      'send-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly\n',
    'RPC failed; HTTP 413 curl 22 The requested URL returned error: 413',
  ],
  [
    'a changed host key',
    '@@@@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@@@@@@\n' +
      'IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nHost key verification failed.\n' +
      'fatal: Could not read from remote repository.\n',
    'Host key verification failed',
  ],
  [
    'a hook with a reason',
    'remote: File big.bin is 120 MB\n ! [remote rejected] x -> x (pre-receive hook declined)\n',
    '! [remote rejected] x -> x (pre-receive hook declined)',
  ],
  ['only a vague line', 'fatal: the remote end hung up unexpectedly\n', 'the remote end hung up unexpectedly'],
  ['no output', '', 'exit code 128'],
])('the reason of a git failure is shown: %s', (_, stderr, reason) => {
  expect(reasonIn(stderr, 128)).toBe(reason);
});
