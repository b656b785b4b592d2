import { createRoute, type z } from '@hono/zod-openapi';
import { pageAfter } from '../kernel/page-after.ts';
import { ApiFault } from './contracts.ts';
import * as drift from './drift-schema.ts';
import { type App, errors, json, notFound, pageOf } from './route-parts.ts';
import { pageQuery } from './schemas.ts';

/** What stands behind the part of the management API that is about drift. */
export interface DriftSurface {
  /** By route and backend. */
  drift(): drift.DriftView[];
  /** Whether a route of that name is watched. */
  watches(route: string): boolean;
  /** Begins new references; of how many backends. */
  refreeze(route: string, backend: string | undefined, actor: string): number;
  labelDrift(labels: z.infer<typeof drift.labelsRequest>['labels']): z.infer<typeof drift.labelsTaken>;
}

/** Drift: what comes in and goes out of routes, against what did before. */
export function addDrift(app: App, surface: DriftSurface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/drift',
      summary: 'What is watched for drift, by route and backend.',
      request: { query: pageQuery },
      responses: {
        200: json(pageOf(drift.driftSchema), 'One page, sorted by name.'),
        ...errors,
        ...notFound,
      },
    }),
    (c) => {
      const asked = c.req.valid('query');
      const page = pageAfter(surface.drift(), ({ name }) => name, asked);
      if (!page) throw unknown(asked.after!);
      return c.json(page, 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/drift/{route}',
      summary: 'The backends of one route.',
      request: { params: drift.routeParam },
      responses: { 200: json(pageOf(drift.driftSchema), 'All of them.'), ...errors, ...notFound },
    }),
    (c) => {
      const { route } = c.req.valid('param');
      if (!surface.watches(route)) throw unknown(route);
      return c.json({ data: surface.drift().filter((each) => each.route === route), next: null }, 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/drift/{route}/refreeze',
      summary: 'What comes now is the new reference: the old one and its incident go.',
      request: { params: drift.routeParam, body: json(drift.refreezeRequest, 'Of which backend.') },
      responses: { 200: json(drift.refrozenSchema, 'Of how many backends.'), ...errors, ...notFound },
    }),
    (c) => {
      const { route } = c.req.valid('param');
      const { backend } = c.req.valid('json');
      if (!surface.watches(route)) throw unknown(route);
      const backends = surface.refreeze(route, backend, c.var.actor);
      if (backend !== undefined && backends === 0) throw unknown(`${route}|${backend}`);
      return c.json({ route, backends }, 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/drift/labels',
      summary: 'Late labels of answers that were observed.',
      request: { body: { ...json(drift.labelsRequest, 'Up to 1000.'), required: true } },
      responses: { 200: json(drift.labelsTaken, 'What became of them.'), ...errors },
    }),
    (c) => c.json(surface.labelDrift(c.req.valid('json').labels), 200),
  );
}

const unknown = (name: string) =>
  new ApiFault(404, 'not_found', `Nothing called '${name}' is watched for drift.`);
