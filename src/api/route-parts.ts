import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Caller, Refusal } from './access.ts';
import * as schemas from './schemas.ts';

/** What the routes of the management API are described with. */

/** What the listener has found out about a request before it comes here. */
export interface Bindings {
  caller: Caller | Refusal;
}

interface Variables {
  actor: string;
}

export interface Env {
  Bindings: Bindings;
  Variables: Variables;
}

export type App = OpenAPIHono<Env>;

export const json = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});
export const errors = {
  400: json(schemas.errorSchema, 'The request cannot be read.'),
  401: json(schemas.errorSchema, 'A token is needed.'),
  403: json(schemas.errorSchema, 'Not allowed.'),
} as const;
export const notFound = { 404: json(schemas.errorSchema, 'There is no such thing.') } as const;
export const idParam = z.object({ id: z.string().min(1).max(512) });

export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    data: z.array(item),
    next: z.string().nullable().describe('`after` of the next page; null on the last.'),
  });
}
