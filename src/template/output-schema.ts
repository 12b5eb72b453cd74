/**
 * Output schemas as claude takes them. It compiles them with Ajv's defaults (JSON Schema draft 7, strict, no formats);
 * one that does not compile it drops without a word, and the session fails after it was paid for.
 */
import Ajv from 'ajv';
import { errorText } from '../core/failure.ts';

const ajv = new Ajv({ logger: false });

/** What claude could not do with the schema, without a full stop; null when it takes it. */
export function outputSchemaFault(schema: Readonly<Record<string, unknown>>): string | null {
  const { $schema } = schema;
  if (typeof $schema === 'string' && !/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test($schema)) {
    return 'it must be of draft 7; leave out "$schema"';
  }
  // Ajv keeps what it compiled, under its own identity and under its $id.
  const own = { ...schema };
  try {
    ajv.compile(own);
    return null;
  } catch (error) {
    const said = errorText(error).replace(/^schema is invalid: /, '');
    const format = /^unknown format "(.+)" ignored/.exec(said)?.[1];
    if (format === undefined) return said.replace(/^strict mode: /, '');
    return `claude knows no formats; leave out "format: ${format}", or say it in a description`;
  } finally {
    ajv.removeSchema(own);
  }
}
