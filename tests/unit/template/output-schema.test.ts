/** Promises: exactly the schemas that claude takes are taken; for the others the sentence says what to change. */
import { expect, test } from 'bun:test';
import { outputSchemaFault } from '../../../src/template/workflow/schema.ts';

/** Each was given to the real claude: it offers the tool for the answer with these ... */
const taken: readonly object[] = [
  { type: 'string' },
  { type: ['string', 'null'] },
  { type: 'array' },
  { type: 'string', minimum: 3 },
  { type: 'string', nullable: true },
  { type: 'string', default: 'x', readOnly: true, deprecated: true },
  { type: 'array', items: [{ type: 'string' }], additionalItems: false },
];

test.each(taken.map((schema) => [JSON.stringify(schema), schema] as const))('%s is taken', (_text, schema) => {
  expect(outputSchemaFault({ type: 'object', properties: { a: schema } })).toBeNull();
});

/** ... and not with these. */
const dropped: readonly (readonly [object | null, string])[] = [
  [{ type: 'strin' }, 'type'],
  [null, 'properties/a'],
  [{ type: 'string', pattern: '(' }, 'regular expression'],
  [{ type: 'string', format: 'date-time' }, 'leave out "format: date-time"'],
  [{ type: 'string', colour: 1 }, 'colour'],
  [{ $ref: '#/nowhere' }, '#/nowhere'],
  [{ enum: ['x', 'x'] }, 'enum'],
  [{ enum: [] }, 'enum'],
  [{ type: 'string', minLength: -1 }, 'minLength'],
  [{ type: 'array', prefixItems: [{ type: 'string' }] }, 'prefixItems'],
];

test.each(dropped.map(([schema, words]) => [JSON.stringify(schema), schema, words] as const))(
  '%s is not',
  (_text, schema, words) => {
    expect(outputSchemaFault({ type: 'object', properties: { a: schema } })).toContain(words);
  },
);

test('only draft 7 is known', () => {
  expect(outputSchemaFault({ $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' })).toBeNull();
  const newer = 'https://json-schema.org/draft/2020-12/schema';
  expect(outputSchemaFault({ $schema: newer, type: 'object' })).toContain('leave out "$schema"');
});
