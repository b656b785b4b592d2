import { createRoute, type z } from '@hono/zod-openapi';
import * as schemas from './retirements-schema.ts';
import { type App, errors, idParam, json, notFound, pageOf } from './route-parts.ts';
import { errorSchema, pageQuery } from './schemas.ts';

export type { RetirementPlanView, RetirementView } from './retirements-schema.ts';

/** What stands behind the part of the management API that is about retirements. Each may throw an ApiFault. */
export interface RetirementsSurface {
  planRetirement(asked: z.infer<typeof schemas.retirementPlanRequest>): Promise<schemas.RetirementPlanView>;
  startRetirement(
    asked: z.infer<typeof schemas.retirementRequest>,
    actor: string,
  ): Promise<schemas.RetirementView>;
  /** Newest first. */
  retirements(asked: z.infer<typeof pageQuery>): { data: schemas.RetirementView[]; next: string | null };
  retirement(id: string): schemas.RetirementView;
  undoRetirement(id: string, actor: string): Promise<schemas.RetirementView>;
  finishRetirement(id: string, actor: string): Promise<schemas.RetirementView>;
}

const conflict = { 409: json(errorSchema, 'Something has to be done first.') } as const;
const one = json(schemas.retirementSchema, 'The retirement.');

/** Backends, routes and versions that are taken out of service, step by step. */
export function addRetirements(app: App, surface: RetirementsSurface): void {
  addReading(app, surface);
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/retirements/plan',
      summary: 'Shows what retiring something would do; nothing is done.',
      request: { body: { ...json(schemas.retirementPlanRequest, 'What.'), required: true } },
      responses: {
        200: json(schemas.retirementPlanSchema, 'The plan.'),
        ...errors,
        ...notFound,
        ...conflict,
      },
    }),
    async (c) => c.json(await surface.planRetirement(c.req.valid('json')), 200),
  );
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/retirements',
      summary: 'Begins to retire something.',
      request: { body: { ...json(schemas.retirementRequest, 'What.'), required: true } },
      responses: { 201: one, ...errors, ...notFound, ...conflict },
    }),
    async (c) => c.json(await surface.startRetirement(c.req.valid('json'), c.var.actor), 201),
  );
  for (const [what, summary, run] of [
    ['undo', 'Puts everything back as it was; not after the last step.', surface.undoRetirement],
    ['finish', 'Makes the last step, once it is proven that nobody calls it.', surface.finishRetirement],
  ] as const)
    app.openapi(
      createRoute({
        method: 'post',
        path: `/api/v1/retirements/{id}/${what}`,
        summary,
        request: { params: idParam },
        responses: { 200: one, ...errors, ...notFound, ...conflict },
      }),
      async (c) => c.json(await run(c.req.valid('param').id, c.var.actor), 200),
    );
}

function addReading(app: App, surface: RetirementsSurface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/retirements',
      summary: 'Retirements, those that are over included.',
      request: { query: pageQuery },
      responses: {
        200: json(pageOf(schemas.retirementSchema), 'One page, newest first.'),
        ...errors,
        ...notFound,
      },
    }),
    (c) => c.json(surface.retirements(c.req.valid('query')), 200),
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/retirements/{id}',
      summary: 'One of them.',
      request: { params: idParam },
      responses: { 200: one, ...errors, ...notFound },
    }),
    (c) => c.json(surface.retirement(c.req.valid('param').id), 200),
  );
}
