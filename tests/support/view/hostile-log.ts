/** Groups whose names, texts and answers must not appear unescaped in a report. */
import { attemptId, CoreLog, sessionDefinition, sid, usage } from '../core-events.ts';

export const hostileTexts = [
  '</script><script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='x' \"",
  '<!-- --> ]]> &amp; &lt; &#0; &',
  '\u001b[31mred\u001b]52;c;AAAA\u0007 \u009b0m',
  '\u202eright to left\u2066 \u061c العربية',
  'half \ud83d character \ufffe\uffff\u0000',
  '```\n</details>\n# heading\n| a | b |\n@someone #12 https://example.org',
  '日本語 🚀 é',
  ' ',
  '%%{init: {}}%% --> "];',
] as const;

/** Two sessions of which one waits for the other, one that failed, and one that it blocks. */
export function hostileLog(text: string): CoreLog {
  const log = new CoreLog({ maxBudgetUsd: 5 });
  const texts = { description: text, prompt: text, projectPath: `/projects/${text}` };
  for (const [number, on] of [[1], [2, 1], [3], [4, 3]] as const) {
    const dependsOn = on === undefined ? [] : [on];
    log.addSession(sessionDefinition(number, dependsOn, { name: `${number} ${text}`, ...texts }));
  }
  const of = (number: number) => ({ sessionId: sid(number), attemptId: attemptId(sid(number), 1) });
  const used = { ...usage(0.5), models: { [text]: { costUsd: 0.5, tokens: usage(0.5).tokens } } };
  const workspace = { path: '/w', folder: '/w', repository: '/r', branch: text, base: 'b' };
  const work = { commit: text, files: 1, insertions: 2, deletions: 3 };
  log.add({ type: 'group_redefined', group: { name: text, description: text }, changed: ['name'] });
  log.run().start(sid(1));
  log.add(
    { type: 'session_isolated', ...of(1), workspace },
    { type: 'session_warning', sessionId: sid(1), warning: { code: 'denied-tools', message: text } },
    { type: 'session_message', sessionId: sid(1), text },
    { type: 'session_completed', ...of(1), result: text, structured: { [text]: [text] }, work, usage: used },
  );
  log.start(sid(2)).start(sid(3));
  const ended = { message: text, output: text, usage: used };
  log.add(
    { type: 'session_paused', ...of(2), reason: 'not-accepted', ...ended },
    { type: 'session_failed', ...of(3), reason: 'claude-error', next: text, ...ended },
    { type: 'group_failed', reason: 'sessions-failed', message: text },
  );
  return log;
}
