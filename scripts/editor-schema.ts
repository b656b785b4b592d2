import { z } from 'zod';
import { settingsSchema } from '../src/config/schema/index.ts';

/** A value that is written as a reference, where a text of a certain form or a number is expected. */
const REFERENCE = { type: 'string' as const, pattern: '\\$\\{(env|file):[^{}]+\\}' };

/** docs/armature.schema.json: what editors complete and check armature.yaml with. */
export function editorSchema(): string {
  const schema = z.toJSONSchema(settingsSchema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      const { type, pattern } = jsonSchema;
      // What our own marks say is of no use to editors.
      delete jsonSchema['secret'];
      delete jsonSchema['jinja'];
      delete jsonSchema['file'];
      const strict =
        type === 'number' ||
        type === 'integer' ||
        type === 'boolean' ||
        pattern !== undefined ||
        jsonSchema.enum;
      if (!strict) return;
      const { description, default: fallback, title, ...own } = jsonSchema;
      for (const key of Object.keys(own)) delete jsonSchema[key];
      jsonSchema.anyOf = [own, REFERENCE];
    },
  });
  const { $schema, ...rest } = schema;
  return `${JSON.stringify({ $schema, title: 'Armature configuration', ...rest }, null, 2)}\n`;
}
