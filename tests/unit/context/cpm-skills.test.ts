/**
 * Promises of CPM skills: the checker names what is missing, with its place; the fix adds to the section about state
 * and changes nothing else, whatever text it is given, and nothing that it does not understand; the 14 shipped skills
 * are sound and each one is its own.
 */
import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { cpmRules, parseHeader } from '../../../src/context/cpm/state.ts';
import { checkSkill, withProcedures } from '../../../src/context/cpm-skills.ts';
import { fc } from '../../support/property.ts';

const templates = resolve(import.meta.dir, '../../../templates');
const section = readFileSync(join(templates, 'cpm', 'state-management.md'), 'utf8');

const front = '---\nname: bake\ndescription: Bakes bread. Use it when there is none.\n---\n';
const body = `
# Bake

## Phase 1: Mix

## Phase 2: Wait

### Phase 3 - Heat

## Output

\`docs/bread/{nn}-loaf.md\`, numbered.

## How to end

Eat.
`;
const whole = `${front}${body}\n${section}`;
const problemsOf = (text: string, folder = 'bake') =>
  checkSkill({ file: 'SKILL.md', folder, text, procedures: '' }).map(({ line, message }) => `${line}: ${message}`);

describe('checkSkill', () => {
  test('a whole skill has no problem, whatever its ends of line and the blank lines at its end', () => {
    expect(problemsOf(whole)).toEqual([]);
    expect(problemsOf(whole.replaceAll('\n', '\r\n'))).toEqual([]);
    expect(problemsOf(`${whole.trimEnd()}`)).toEqual([]);
    expect(problemsOf(`${whole}\n\n`)).toEqual([]);
    expect(problemsOf(`${front}\n${section}\n${body}`)).toEqual([]);
  });

  test.each([
    ['', 'has no front matter'],
    ['---\nname: bake\n', 'has no front matter'],
    ['---\n---\n', 'the front matter has to be'],
    ['---\nname: [\n---\n', 'SKILL.md:'],
    ['---\nname: ../x\ndescription: x\n---\n', 'name has to be small letters'],
    ['---\nname: cake\ndescription: x\n---\n', 'name is "cake", but the folder is "bake"'],
    ['---\nname: bake\n---\n', 'description is missing'],
    ['---\nname: bake\ndescription: "  "\n---\n', 'description is missing'],
    [`---\nname: bake\ndescription: ${'x'.repeat(1025)}\n---\n`, 'more than 1024 characters'],
  ])('front matter %j', (head, message) => {
    const problems = checkSkill({
      file: 'SKILL.md',
      folder: 'bake',
      text: `${head}${body}\n${section}`,
      procedures: '',
    });
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.map((one) => `${one.file}: ${one.message}`).join('\n')).toContain(
      message === 'SKILL.md:' ? 'SKILL.md: ' : message,
    );
  });

  test('the section is there in words of its own, and what it does not say is named', () => {
    expect(problemsOf(`${front}${body}`)).toEqual(['21: has no section "## State Management"']);
    const own = (text: string) => problemsOf(`${front}${body}\n## State management\n\n${text}\n`);
    const file = 'Keep `docs/plans/.cpm-progress-{id}.md`, named by CPM_SESSION_ID, in a table.';
    expect(own(`${file} Adopt an older one. Remove it when done.`)).toEqual([]);
    const said = 'the section "State Management" does not say to';
    expect(own(`${file} Adopt an older one.`)).toEqual([`22: ${said} delete the file at the end`]);
    expect(own('Keep `docs/plans/.cpm-progress.md`, and delete it.')).toEqual([
      `22: ${said} use docs/plans/.cpm-progress-{session_id}.md with the CPM_SESSION_ID of the context`,
      `22: ${said} adopt the file of an older session id`,
    ]);
  });

  test('a procedure that the skills of a plugin share counts for the section that names it, and no other', () => {
    const text = `${front}${body}\n## State Management\n\nFollow the shared **Keeping state** procedure.\n`;
    const state = '`.cpm-progress-{id}.md` by CPM_SESSION_ID. Adopt an older one. Delete it at the end.';
    const count = (procedures: string) => checkSkill({ file: 'x', folder: 'bake', text, procedures }).length;
    expect(count(`# All\n\n## Keeping state\n\n${state}\n`)).toBe(0);
    expect(count(`# All\n\n## Keeping state\n\n## More\n\n${state}\n`)).toBe(3);
    expect(count('')).toBe(3);
  });

  test('a skill that says that it is stateless needs no section', () => {
    expect(problemsOf(`${front}${body}\nThis skill is **stateless**.\n`)).toEqual([]);
    expect(problemsOf(`---\n---\n${body}\nThis skill is **stateless**.\n`)).toHaveLength(1);
  });

  test('a block of code that is never closed is named where it begins, and by itself', () => {
    expect(problemsOf(whole.replace('Eat.', '````\nEat.\n```'))).toEqual([
      '20: begins a block of code that is never closed',
    ]);
  });
});

describe('withSection', () => {
  const mended = (text: string) => withProcedures({ text, procedures: '' }, section) ?? 'nothing';

  const item = (name: string) => section.split('\n').find((line) => line.startsWith(`- **${name}**`)) ?? '';

  test('puts it at the end, or what is missing at the end of the one of the skill', () => {
    expect(mended(`${front}${body}`)).toBe(whole);
    expect(mended(`${front}${body.trimEnd()}`)).toBe(whole);
    const own = `${front}\n## State Management\n\n| my | table |\n\n### Part\n\nDelete .cpm-progress.md.\n`;
    const added = `\n${item('Where')}\n${item('Adoption')}\n`;
    expect(mended(own)).toBe(own + added);
    expect(mended(`${own}## Next\n`)).toBe(`${own}${added}\n## Next\n`);
  });

  test('a section that keeps its state in another way, or by a procedure that is not there, is left as it is', () => {
    for (const words of ['State is in Redis.', 'Follow the shared **Keeping state** procedure.']) {
      expect(mended(`${front}${body}\n## State Management\n\n${words}\n`)).toBe('nothing');
    }
    const stateless = `${front}${body}\nStateless.\n`;
    expect(mended(stateless)).toBe(stateless);
  });

  test('keeps the ends of line', () => {
    const windows = `${front}${body}`.replaceAll('\n', '\r\n');
    expect(mended(windows)).toBe(whole.replaceAll('\n', '\r\n'));
  });

  test('what stands in a block of code is text; an open block is not mended', () => {
    const fenced = `${front}\n~~~\n## State Management\n~~~\n`;
    expect(mended(fenced)).toBe(`${fenced}\n${section}`);
    expect(mended(`${front}\n\`\`\`\n## State Management\n`)).toBe('nothing');
  });

  test('whatever the text: the section is right then, a second time changes nothing, no other line is lost', () => {
    const line = fc.constantFrom(
      ...['', '# A', '## State Management', '### state-management', '# State Management', '## B', '### C', 'text'],
      ...['---', '```', '~~~~', '```js', '- item', '  ## D  ##', 'Mine.', '\ttab', '`` ` ``', '## Phase 1: x', '\r'],
    );
    const eol = fc.constantFrom('\n', '\r\n');
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), eol, fc.boolean(), (lines, end, ends) => {
        const text = lines.join(end) + (ends ? end : '');
        const result = mended(text);
        if (result === 'nothing') {
          expect(problemsOf(text).join()).toMatch(/never closed|the section "State Management" does not say/);
          return;
        }
        expect(problemsOf(result).filter((problem) => problem.includes('section'))).toEqual([]);
        expect(mended(result)).toBe(result);
        // Nothing is taken away: its lines are there in their order.
        const left = result.split('\n').values();
        for (const one of text.trimEnd().split('\n')) {
          expect(left.some((other) => other.trimEnd() === one.trimEnd())).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});

const names = [
  ...['discover', 'brief', 'spec', 'architect', 'epics', 'do', 'review', 'retro', 'pivot', 'party', 'library'],
  ...['archive', 'present', 'quick'],
].sort();
const skills = join(templates, 'configs', 'cpm', 'skills');
const textOf = (name: string) => readFileSync(join(skills, name, 'SKILL.md'), 'utf8');
/** What is a skill's own. */
const bodyOf = (name: string) => textOf(name).replace(section.trim(), '');
const linesOf = (text: string) => text.split('\n').filter((line) => line.trim() !== '');

test('the 14 skills are there, and nothing else', () => {
  expect(readdirSync(skills).sort()).toEqual(names);
  for (const name of names) expect(readdirSync(join(skills, name))).toEqual(['SKILL.md']);
});

describe.each(names)('skill %s', (name) => {
  test('is sound, and of a length that is read', () => {
    expect(checkSkill({ file: name, folder: name, text: textOf(name), procedures: '' })).toEqual([]);
    expect(textOf(name)).toContain(section.trim());
    const { length } = textOf(name).trimEnd().split('\n');
    expect(length).toBeGreaterThanOrEqual(60);
    expect(length).toBeLessThanOrEqual(120);
  });

  test('says its input, what to ask, what its progress file holds and how to end', () => {
    const text = bodyOf(name);
    for (const heading of ['Input', 'What to ask', 'Output', 'Progress file', 'How to end']) {
      expect(text).toContain(`\n## ${heading}\n`);
    }
    expect(text).toContain('$ARGUMENTS');
    expect(text).toContain('**Use it**');
    // Variables of a config template would have to be declared.
    expect(text).not.toContain('{{');
    // Progress files count the phases. Every phase has steps.
    const phases = text.split(/\n## Phase /).slice(1);
    expect(phases.length).toBeGreaterThanOrEqual(3);
    expect(phases.map((phase) => Number.parseInt(phase, 10))).toEqual(phases.map((_, index) => index + 1));
    for (const phase of phases) expect(phase.split('\n## ')[0]).toContain('\n1. ');
    expect(text.split('\n## Output\n')[1]).toMatch(/^[^#]*`\w[\w.{}<>*-]*\//);
  });

  test('[manual] all 14 SKILL.md files reference CPM_SESSION_ID, and the path uses the session id pattern', () => {
    expect(textOf(name)).toContain('CPM_SESSION_ID');
    const paths = textOf(name).match(/[\w./]*\.cpm-progress[\w{}.-]*/g);
    expect(paths).toEqual(['docs/plans/.cpm-progress-{session_id}.md', 'docs/plans/.cpm-progress.md']);
  });

  test('S3: names what may change the session id: /clear, a fork and a resume', () => {
    const adoption =
      textOf(name)
        .split('\n')
        .find((line) => line.startsWith('- **Adoption**')) ?? '';
    for (const word of ['`/clear`', 'fork', 'resume']) expect(adoption).toContain(word);
    // The old file goes last.
    expect(adoption).toContain('write its content to the file of your own id, read that back, and only then delete');
  });
  test('shares at most half its lines with any other', () => {
    const own = linesOf(bodyOf(name));
    for (const other of names.filter((one) => one !== name)) {
      const others = new Set(linesOf(bodyOf(other)));
      const shared = own.filter((line) => others.has(line)).length;
      expect([other, shared / own.length <= 0.5]).toEqual([other, true]);
    }
  });

  test('what it suggests next are skills', () => {
    const end = bodyOf(name).split('\n## How to end\n')[1] ?? '';
    for (const [, suggested] of end.matchAll(/`([a-z]+)`/g)) expect(names).toContain(suggested as string);
  });
});

describe('the shared section', () => {
  test('S3: what every session of a group is told names the same three', () => {
    expect(cpmRules).toMatch(/`\/clear`, a fork or a resume may change the id/);
  });
  test('S12: it names no CLAUDE.md, which a session may be without', () => {
    expect(cpmRules).not.toContain('CLAUDE.md');
  });
  test('keeps state out of commits, and takes the summary of a compaction away with the progress file', () => {
    expect(section).toContain('put `/docs/plans/.cpm-*` into `.gitignore`');
    expect(section).toMatch(
      /^- \*\*End\*\*: .* delete your progress file .*`docs\/plans\/\.cpm-compact-summary-\{session_id\}\.md`/m,
    );
    expect(cpmRules).toContain('No commit holds it.');
  });
  test('says where, when, adoption, the end, and what to do when nobody can answer', () => {
    for (const word of [
      'CPM_SESSION_ID',
      'CLAUDE_CODE_SESSION_ID',
      'Adoption',
      'delete',
      'Unattended',
      'Next Action',
      'all that later phases need',
      'write it before the first phase, after every phase',
    ]) {
      expect(section).toContain(word);
    }
  });

  test('its form is what our hooks read', () => {
    const form = /```markdown\n([\s\S]*?)```/.exec(section)?.[1] ?? '';
    for (const part of ['## Completed Phases\n### Phase', '## Next Action\n']) expect(form).toContain(part);
    expect(parseHeader(form)).toEqual({
      skill: 'cpm:{name of this skill}',
      phase: '{number} of {count} — {name}',
      artifact: '{path of the artifact}',
    });
  });
});
