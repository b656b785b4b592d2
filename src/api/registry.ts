import { createRoute, type z } from '@hono/zod-openapi';
import { ApiFault } from './contracts.ts';
import { jsonLines } from './json-lines.ts';
import * as schemas from './registry-schema.ts';
import { type App, errors, json, notFound, pageOf } from './route-parts.ts';
import { errorSchema } from './schemas.ts';

export type VersionView = z.infer<typeof schemas.versionSchema>;
export type VersionViewInFull = z.infer<typeof schemas.versionInFullSchema>;
export type AliasView = z.infer<typeof schemas.aliasSchema>;
export type AliasViewInFull = z.infer<typeof schemas.aliasInFullSchema>;
export type RegisteredModel = z.infer<typeof schemas.registeredModelSchema>;
export type RegisteredInFull = z.infer<typeof schemas.registeredInFullSchema>;
export type ContentView = z.infer<typeof schemas.contentSchema>;
export type DifferenceView = z.infer<typeof schemas.differenceSchema>;

type PageAsked = z.infer<typeof schemas.pageQuery>;
type At = { model: string; number: string };

/** What stands behind the part of the management API that is about versions of models. Each may throw an ApiFault. */
export interface RegistrySurface {
  registeredModels(asked: PageAsked): Promise<{ data: RegisteredModel[]; next: string | null }>;
  registeredModel(name: string, asked: PageAsked): Promise<RegisteredInFull>;
  version(at: At): Promise<VersionViewInFull>;
  addVersion(
    model: string,
    asked: z.infer<typeof schemas.versionRequest>,
    actor: string,
  ): Promise<VersionViewInFull>;
  removeVersion(at: At, actor: string): Promise<z.infer<typeof schemas.versionRemovedSchema>>;
  versionDifference(at: At, to: string | undefined): Promise<DifferenceView>;
  /** Steps as JSON objects, until it is done or failed; whoever leaves ends it. */
  versionSteps(
    what: 'verify' | 'archive' | 'restore',
    at: At,
    actor: string,
  ): Promise<AsyncGenerator<object>>;
  alias(model: string, alias: string, asked: PageAsked): Promise<AliasViewInFull>;
  moveAlias(
    model: string,
    alias: string,
    asked: z.infer<typeof schemas.aliasRequest>,
    actor: string,
  ): Promise<AliasView>;
  removeAlias(model: string, alias: string, expect: number | undefined, actor: string): Promise<void>;
  content(sha256: string): Promise<ContentView>;
  addContent(sha256: string, at: number, piece: Buffer): Promise<ContentView>;
  finishContent(sha256: string): Promise<AsyncGenerator<object>>;
}

const conflict = { 409: json(errorSchema, 'It contradicts what is there.') } as const;
const steps = {
  200: { description: 'One step a line.', content: { 'application/jsonl': { schema: schemas.stepSchema } } },
} as const;

/** Versions of models, their aliases, and what they are made of. */
export function addRegistry(app: App, surface: RegistrySurface): void {
  addModels(app, surface);
  addVersions(app, surface);
  addSteps(app, surface);
  addAliases(app, surface);
  addContent(app, surface);
}

function addModels(app: App, surface: RegistrySurface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/registry',
      summary: 'Models that have versions.',
      request: { query: schemas.pageQuery },
      responses: { 200: json(pageOf(schemas.registeredModelSchema), 'One page, sorted by name.'), ...errors },
    }),
    async (c) => c.json(await surface.registeredModels(c.req.valid('query')), 200),
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/registry/{name}',
      summary: 'Versions and aliases of a model.',
      request: { params: schemas.modelParam, query: schemas.pageQuery },
      responses: { 200: json(schemas.registeredInFullSchema, 'Newest first.'), ...errors, ...notFound },
    }),
    async (c) => c.json(await surface.registeredModel(c.req.valid('param').name, c.req.valid('query')), 200),
  );
}

function addVersions(app: App, surface: RegistrySurface): void {
  const one = '/api/v1/registry/{name}/versions/{number}';
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/registry/{name}/versions',
      summary: 'Seals a version of content that has come in.',
      request: {
        params: schemas.modelParam,
        body: { ...json(schemas.versionRequest, 'What it is.'), required: true },
      },
      responses: {
        201: json(schemas.versionInFullSchema, 'Sealed, under the number that the store gave.'),
        ...errors,
        ...notFound,
        ...conflict,
      },
    }),
    async (c) => {
      const { name } = c.req.valid('param');
      return c.json(await surface.addVersion(name, c.req.valid('json'), c.var.actor), 201);
    },
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: one,
      summary: 'A version, its manifest, and who uses it.',
      request: { params: schemas.versionParam },
      responses: { 200: json(schemas.versionInFullSchema, 'As it is now.'), ...errors, ...notFound },
    }),
    async (c) => c.json(await surface.version(at(c.req.valid('param'))), 200),
  );
  app.openapi(
    createRoute({
      method: 'delete',
      path: one,
      summary: 'Removes a version that nobody uses.',
      request: { params: schemas.versionParam },
      responses: { 200: json(schemas.versionRemovedSchema, 'Removed.'), ...errors, ...notFound, ...conflict },
    }),
    async (c) => c.json(await surface.removeVersion(at(c.req.valid('param')), c.var.actor), 200),
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: `${one}/diff`,
      summary: 'What the manifests of two versions say differently.',
      request: { params: schemas.versionParam, query: schemas.differenceQuery },
      responses: { 200: json(schemas.differenceSchema, 'By path.'), ...errors, ...notFound },
    }),
    async (c) =>
      c.json(await surface.versionDifference(at(c.req.valid('param')), c.req.valid('query').to), 200),
  );
}

function addSteps(app: App, surface: RegistrySurface): void {
  const summaries = {
    verify: 'Reads every file through, and tells what is not as it was.',
    archive: 'Moves the files of a version that nobody uses into the archive.',
    restore: 'Brings the files of an archived version back.',
  } as const;
  for (const what of ['verify', 'archive', 'restore'] as const) {
    app.openapi(
      createRoute({
        method: 'post',
        path: `/api/v1/registry/{name}/versions/{number}/${what}`,
        summary: summaries[what],
        request: { params: schemas.versionParam },
        responses: { ...steps, ...errors, ...notFound, ...conflict },
      }),
      async (c) =>
        jsonLines(c, await surface.versionSteps(what, at(c.req.valid('param')), c.var.actor)) as never,
    );
  }
}

function addAliases(app: App, surface: RegistrySurface): void {
  const path = '/api/v1/registry/{name}/aliases/{alias}';
  app.openapi(
    createRoute({
      method: 'get',
      path,
      summary: 'What an alias leads to now, and everything that it led to.',
      request: { params: schemas.aliasParam, query: schemas.pageQuery },
      responses: { 200: json(schemas.aliasInFullSchema, 'As it is now.'), ...errors, ...notFound },
    }),
    async (c) => {
      const { name, alias } = c.req.valid('param');
      return c.json(await surface.alias(name, alias, c.req.valid('query')), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'put',
      path,
      summary: 'Leads an alias to a version, by compare-and-set.',
      request: {
        params: schemas.aliasParam,
        body: { ...json(schemas.aliasRequest, 'Where to, and from where.'), required: true },
      },
      responses: { 200: json(schemas.aliasSchema, 'Moved.'), ...errors, ...notFound, ...conflict },
    }),
    async (c) => {
      const { name, alias } = c.req.valid('param');
      return c.json(await surface.moveAlias(name, alias, c.req.valid('json'), c.var.actor), 200);
    },
  );
  app.openapi(
    createRoute({
      method: 'delete',
      path,
      summary: 'Takes an alias away; its history stays.',
      request: { params: schemas.aliasParam, query: schemas.expectQuery },
      responses: { 200: json(schemas.removedSchema, 'Taken away.'), ...errors, ...notFound, ...conflict },
    }),
    async (c) => {
      const { name, alias } = c.req.valid('param');
      await surface.removeAlias(name, alias, c.req.valid('query').expect, c.var.actor);
      return c.json({ removed: true as const }, 200);
    },
  );
}

function addContent(app: App, surface: RegistrySurface): void {
  const path = '/api/v1/artifacts/{sha256}';
  app.openapi(
    createRoute({
      method: 'get',
      path,
      summary: 'How much of some content has come in.',
      request: { params: schemas.artifactParam },
      responses: { 200: json(schemas.contentSchema, 'Where to go on.'), ...errors, ...notFound },
    }),
    async (c) => c.json(await surface.content(hashIn(c.req.valid('param'))), 200),
  );
  app.openapi(
    createRoute({
      method: 'put',
      path,
      summary: 'The next piece of some content, 4 MiB at most.',
      request: { params: schemas.artifactParam, query: schemas.pieceQuery },
      responses: { 200: json(schemas.contentSchema, 'Where to go on.'), ...errors, ...notFound, ...conflict },
    }),
    async (c) => {
      const piece = Buffer.from(await c.req.arrayBuffer());
      return c.json(
        await surface.addContent(hashIn(c.req.valid('param')), c.req.valid('query').at, piece),
        200,
      );
    },
  );
  app.openapi(
    createRoute({
      method: 'post',
      path,
      summary: 'Hashes content that has come in whole, looks at what it is, and keeps it.',
      request: { params: schemas.artifactParam },
      responses: { ...steps, ...errors, ...notFound },
    }),
    async (c) => jsonLines(c, await surface.finishContent(hashIn(c.req.valid('param')))) as never,
  );
}

const at = ({ name, number }: { name: string; number: string }): At => ({ model: name, number });

function hashIn({ sha256 }: { sha256: string }): string {
  if (/^[0-9a-f]{64}$/.test(sha256)) return sha256;
  throw new ApiFault(404, 'not_found', `'${sha256}' is no SHA-256: 64 lower-case hexadecimal digits`);
}
