import { createRoute, type z } from '@hono/zod-openapi';
import { ApiFault } from './contracts.ts';
import * as releases from './releases-schema.ts';
import { type App, errors, idParam, json, notFound, pageOf } from './route-parts.ts';
import { errorSchema, pageQuery } from './schemas.ts';

/** What stands behind the part of the management API that is about releases. */
export interface ReleasesSurface {
  /** Newest first; undefined where `after` is none of them. */
  releases(asked: z.infer<typeof releases.releasesQuery>): Promise<Page<releases.ReleaseView> | undefined>;
  release(id: string): Promise<releases.ReleaseView | undefined>;
  /** What workers saw, oldest first; undefined where there is no such release. */
  releaseEvidence(
    id: string,
    asked: z.infer<typeof pageQuery>,
  ): Promise<Page<releases.EvidencePoint> | undefined>;
  /** Throws an ApiFault that says why it is refused. */
  startRelease(body: z.infer<typeof releases.releaseRequest>, actor: string): Promise<releases.ReleaseView>;
  /** By the id of a release or the name of a route. Where nothing is in progress, nothing happens, and it is said. */
  promoteRelease(idOrRoute: string, actor: string): Promise<releases.ReleaseOutcome>;
  abortRelease(idOrRoute: string, actor: string): Promise<releases.ReleaseOutcome>;
}

interface Page<Item> {
  data: Item[];
  next: string | null;
}

const conflict = { 409: json(errorSchema, 'It contradicts what is in force.') } as const;

/** Releases: routes that move to another backend on evidence. */
export function addReleases(app: App, surface: ReleasesSurface): void {
  addReading(app, surface);
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/releases',
      summary: 'Starts a release of a route to a backend.',
      request: { body: { ...json(releases.releaseRequest, 'Which, and how.'), required: true } },
      responses: {
        201: json(releases.releaseSchema, 'It is under way.'),
        ...errors,
        ...notFound,
        ...conflict,
      },
    }),
    async (c) => c.json(await surface.startRelease(c.req.valid('json'), c.var.actor), 201),
  );
  const act = (
    what: 'promote' | 'abort',
    summary: string,
    run: (idOrRoute: string, actor: string) => Promise<releases.ReleaseOutcome>,
  ) =>
    app.openapi(
      createRoute({
        method: 'post',
        path: `/api/v1/releases/{id}/${what}`,
        summary,
        request: { params: idParam },
        responses: {
          200: json(releases.releaseOutcome, 'What came of it.'),
          ...errors,
          ...notFound,
          ...conflict,
        },
      }),
      async (c) => c.json(await run(c.req.valid('param').id, c.var.actor), 200),
    );
  act(
    'promote',
    'Gives a release, by its id or its route, all of the traffic, whatever the evidence.',
    (id, actor) => surface.promoteRelease(id, actor),
  );
  act(
    'abort',
    'Restores what the route had before the release, by its id or its route, over the file too.',
    (id, actor) => surface.abortRelease(id, actor),
  );
}

function addReading(app: App, surface: ReleasesSurface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/releases',
      summary: 'Releases, those that have ended included.',
      request: { query: releases.releasesQuery },
      responses: {
        200: json(pageOf(releases.releaseSchema), 'One page, newest first.'),
        ...errors,
        ...notFound,
      },
    }),
    async (c) => {
      const asked = c.req.valid('query');
      return c.json(known(await surface.releases(asked), asked.after ?? ''), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/releases/{id}',
      summary: 'One release: where it stands, what is known, what it waits for.',
      request: { params: idParam },
      responses: { 200: json(releases.releaseSchema, 'The release.'), ...errors, ...notFound },
    }),
    async (c) => {
      const { id } = c.req.valid('param');
      return c.json(known(await surface.release(id), id), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/releases/{id}/evidence',
      summary: 'What workers saw of a release, over time.',
      request: { params: idParam, query: pageQuery },
      responses: {
        200: json(pageOf(releases.evidencePoint), 'One page, oldest first.'),
        ...errors,
        ...notFound,
      },
    }),
    async (c) => {
      const { id } = c.req.valid('param');
      return c.json(known(await surface.releaseEvidence(id, c.req.valid('query')), id), 200);
    },
  );
}

function known<Found>(found: Found | undefined, id: string): Found {
  if (found === undefined) throw new ApiFault(404, 'not_found', `There is no release '${id}'.`);
  return found;
}
