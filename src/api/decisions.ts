import { createRoute, type z } from '@hono/zod-openapi';
import * as schemas from './registry-schema.ts';
import { type App, errors, idParam, json, notFound, pageOf } from './route-parts.ts';

export type DecisionView = z.infer<typeof schemas.decisionSchema>;

/** What stands behind the part of the management API that is about decisions about stacks. Each may throw an ApiFault. */
export interface DecisionsSurface {
  /** Oldest first, without what their files hold. */
  decisions(asked: z.infer<typeof schemas.pageQuery>): Promise<{ data: DecisionView[]; next: string | null }>;
  decision(id: string): Promise<DecisionView>;
  decide(asked: z.infer<typeof schemas.decisionRequest>, actor: string): Promise<DecisionView>;
}

/** Who chose which engine, hardware and version for what, and why. */
export function addDecisions(app: App, surface: DecisionsSurface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/decisions',
      summary: 'Decisions about stacks.',
      request: { query: schemas.pageQuery },
      responses: {
        200: json(pageOf(schemas.decisionSchema), 'One page, oldest first, without what their files hold.'),
        ...errors,
      },
    }),
    async (c) => c.json(await surface.decisions(c.req.valid('query')), 200),
  );
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/decisions',
      summary: 'Records a decision.',
      request: { body: { ...json(schemas.decisionRequest, 'What was decided.'), required: true } },
      responses: { 201: json(schemas.decisionSchema, 'Recorded.'), ...errors, ...notFound },
    }),
    async (c) => c.json(await surface.decide(c.req.valid('json'), c.var.actor), 201),
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/decisions/{id}',
      summary: 'One of them.',
      request: { params: idParam },
      responses: { 200: json(schemas.decisionSchema, 'As it was recorded.'), ...errors, ...notFound },
    }),
    async (c) => c.json(await surface.decision(c.req.valid('param').id), 200),
  );
}
