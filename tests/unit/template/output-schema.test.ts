/** Promises: exactly the schemas that claude accepts are accepted, and messages about others say what to change. */
import { expect, test } from 'bun:test';
import { outputSchemaFault } from '../../../src/template/workflow/schema.ts';

/** The real claude was given each of these: it offers the answer tool with them ... */
const taken: readonly object[] = [
  { type: 'string' },
  { type: ['string', 'null'] },
  { type: 'array' },
  { type: 'string', minimum: 3 },
  { type: 'string', nullable: true },
  { type: 'string', default: 'x', readOnly: true, deprecated: true },
  { type: 'array', items: [{ type: 'string' }], additionalItems: false },
];

test.each(taken.map((schema) => [JSON.stringify(schema), schema] as const))(
  'the output schema %s is accepted',
  (_text, schema) => {
    expect(outputSchemaFault({ type: 'object', properties: { a: schema } })).toBeNull();
  },
);

/** ... and not with these. */
const dropped: readonly (readonly [object | null, string])[] = [
  [{ type: 'strin' }, 'type'],
  [null, 'properties/a'],
  [{ type: 'string', pattern: '(' }, 'regular expression'],
  [{ type: 'string', format: 'date-time' }, 'remove "format: date-time"'],
  [{ type: 'string', colour: 1 }, 'colour'],
  [{ $ref: '#/nowhere' }, '#/nowhere'],
  [{ enum: ['x', 'x'] }, 'enum'],
  [{ enum: [] }, 'enum'],
  [{ type: 'string', minLength: -1 }, 'minLength'],
  [{ type: 'array', prefixItems: [{ type: 'string' }] }, 'prefixItems'],
];

test.each(dropped.map(([schema, words]) => [JSON.stringify(schema), schema, words] as const))(
  'the output schema %s is refused',
  (_text, schema, words) => {
    expect(outputSchemaFault({ type: 'object', properties: { a: schema } })).toContain(words);
  },
);

test('only JSON Schema draft 7 is accepted', () => {
  expect(outputSchemaFault({ $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' })).toBeNull();
  const newer = 'https://json-schema.org/draft/2020-12/schema';
  expect(outputSchemaFault({ $schema: newer, type: 'object' })).toContain('remove "$schema"');
});
