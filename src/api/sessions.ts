import { createRoute } from '@hono/zod-openapi';
import { ApiFault, type Surface } from './contracts.ts';
import { type App, errors, idParam, json, notFound, pageOf } from './route-parts.ts';
import * as schemas from './schemas.ts';

/** Conversations and trees of responses that the gateway keeps, whatever their tenant. */
export function addSessions(app: App, surface: Surface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/sessions',
      summary: 'Conversations and trees of responses that are kept.',
      request: { query: schemas.sessionsQuery },
      responses: {
        200: json(pageOf(schemas.sessionSchema), 'One page, last continued first.'),
        ...errors,
        ...notFound,
      },
    }),
    async (c) => {
      const asked = c.req.valid('query');
      return c.json(known(await surface.sessions(asked), asked.after ?? ''), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/sessions/{id}',
      summary: 'One of them in full: every turn, and what answered it.',
      request: { params: idParam },
      responses: { 200: json(schemas.sessionInFullSchema, 'All of it.'), ...errors, ...notFound },
    }),
    async (c) => {
      const { id } = c.req.valid('param');
      return c.json(known(await surface.session(id), id), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'delete',
      path: '/api/v1/sessions/{id}',
      summary: 'Removes one, with every response of it.',
      request: { params: idParam },
      responses: { 200: json(schemas.sessionRemovedSchema, 'Removed.'), ...errors, ...notFound },
    }),
    async (c) => {
      const { id } = c.req.valid('param');
      known((await surface.removeSession(id, c.var.actor)) || undefined, id);
      return c.json({ id, removed: true as const }, 200);
    },
  );
}

function known<Found>(found: Found | undefined, id: string): Found {
  if (found === undefined) throw new ApiFault(404, 'not_found', `There is no session '${id}'.`);
  return found;
}
