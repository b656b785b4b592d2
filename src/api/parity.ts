import { createRoute } from '@hono/zod-openapi';
import type { z } from 'zod';
import { ApiFault } from './contracts.ts';
import * as parity from './parity-schema.ts';
import { type App, errors, idParam, json, notFound, pageOf } from './route-parts.ts';
import { errorSchema, pageQuery } from './schemas.ts';

export type ParityRequest = z.infer<typeof parity.parityRequestSchema>;
export type CertificateView = z.infer<typeof parity.certificateSchema>;
export type ParityMatrix = z.infer<typeof parity.parityMatrixSchema>;

/** What stands behind these routes. Each may throw an ApiFault. */
export interface ParitySurface {
  /** Newest first; undefined where `after` is none of them. */
  parities(asked: {
    limit: number;
    after?: string | undefined;
  }): { data: CertificateView[]; next: string | null } | undefined;
  parity(id: string): CertificateView | undefined;
  parityMatrix(): ParityMatrix;
  startParity(request: ParityRequest, actor: string): Promise<CertificateView>;
  /** False where it does not run. */
  stopParity(id: string): boolean;
}

export function addParity(app: App, surface: ParitySurface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/parity',
      summary: 'Comparisons of two backends, and the certificates that came of them.',
      request: { query: pageQuery },
      responses: {
        200: json(pageOf(parity.certificateSchema), 'One page, newest first.'),
        ...errors,
        ...notFound,
      },
    }),
    (c) => {
      const asked = c.req.valid('query');
      return c.json(known(surface.parities(asked), asked.after ?? ''), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/parity',
      summary: 'Begins to compare a backend with another.',
      request: { body: { ...json(parity.parityRequestSchema, 'Which, and on what.'), required: true } },
      responses: {
        202: json(parity.certificateSchema, 'It runs: ask for it again.'),
        ...errors,
        ...notFound,
        409: json(errorSchema, 'Too many run already.'),
      },
    }),
    async (c) => c.json(await surface.startParity(c.req.valid('json'), c.var.actor), 202),
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/parity/matrix',
      summary: 'How each pair of backends that was compared stands.',
      responses: { 200: json(parity.parityMatrixSchema, 'Ready for a table.'), ...errors },
    }),
    (c) => c.json(surface.parityMatrix(), 200),
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/parity/{id}',
      summary: 'One comparison, with its figures so far.',
      request: { params: idParam },
      responses: { 200: json(parity.certificateSchema, 'All of it.'), ...errors, ...notFound },
    }),
    (c) => {
      const { id } = c.req.valid('param');
      return c.json(known(surface.parity(id), id), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'delete',
      path: '/api/v1/parity/{id}',
      summary: 'Stops a comparison that runs; what was found stays.',
      request: { params: idParam },
      responses: { 200: json(parity.parityStoppedSchema, 'Stopped.'), ...errors, ...notFound },
    }),
    (c) => {
      const { id } = c.req.valid('param');
      known(surface.parity(id), id);
      return c.json({ id, stopped: surface.stopParity(id) }, 200);
    },
  );
}

function known<Found>(found: Found | undefined, id: string): Found {
  if (found === undefined) throw new ApiFault(404, 'not_found', `There is no comparison '${id}'.`);
  return found;
}
