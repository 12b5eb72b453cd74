/** Promises: the server's name for a repository is read from every form of address, and paths have none. */
import { expect, test } from 'bun:test';
import { headIn, repositorySlug } from '../../../src/git/push.ts';

test.each([
  ['https://github.com/team/shop.git', 'github.com/team/shop'],
  ['https://user:secret@github.com/team/shop', 'github.com/team/shop'],
  ['https://git.example.org:8443/team/shop.git/', 'git.example.org/team/shop'],
  ['git@github.com:team/shop.git', 'github.com/team/shop'],
  ['ssh://git@ssh.github.com:443/team/shop.js.git', 'github.com/team/shop.js'],
  // Only the user's ssh can resolve that host; gh resolves it by itself.
  ['git@work:team/shop.git', null],
  ['https://git.example.org/group/sub/shop.git', null],
  ['/srv/git/shop.git', null],
  ['../a:b/shop.git', null],
  ['file:///srv/git/shop.git', null],
  ['', null],
])('the repository name on the server is read from %s', (url, slug) => {
  expect(repositorySlug(url)).toBe(slug);
});

test('a pull request from a fork names the fork’s owner', () => {
  expect(headIn({ name: 'fork', base: 'main', owner: 'ada' }, 'cca/shop')).toBe('ada:cca/shop');
  expect(headIn({ name: 'origin', base: 'main' }, 'cca/shop')).toBe('cca/shop');
});
