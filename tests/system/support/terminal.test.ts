/** Promise: a test sees complete frames of the terminal, as a user does. */
import { expect, test } from 'bun:test';
import { TestTerminal } from '../../support/terminal.ts';

test('an incomplete frame is not on the screen yet', async () => {
  const draw = "printf '\\033[?2026htop'; read -r line; printf '\\033[2;1Hbottom\\033[?2026l'; read -r line";
  const env = { PATH: process.env.PATH ?? '' };
  const shown = new TestTerminal(['sh', '-c', `stty -echo; ${draw}`], { cwd: '/', env, rows: 3 });
  try {
    let isSeen = false;
    const seen = shown.shows('top').then(() => {
      isSeen = true;
    });
    while (!shown.text().includes('top')) await Bun.sleep(1);
    expect(isSeen).toBe(false);
    shown.type('\n');
    await seen;
    expect(shown.lines()[1]).toBe('bottom');
  } finally {
    shown.close();
  }
});
