import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { LedgerEvent } from '../events/contracts.ts';
import type { Logger } from '../telemetry/logger.ts';
import { ApiFault, type Surface, unreadable } from './contracts.ts';
import { addDecisions } from './decisions.ts';
import { addDrift } from './drift.ts';
import { PAGE, PAGE_POLICY } from './page.ts';
import { addParity } from './parity.ts';
import { addRegistry } from './registry.ts';
import { addReleases } from './releases.ts';
import { addRetirements } from './retirements.ts';
import { type App, type Env, errors, idParam, json, notFound, pageOf } from './route-parts.ts';
import * as schemas from './schemas.ts';
import { addSessions } from './sessions.ts';
import { statusSchema } from './status-schema.ts';

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const EVENTS_TYPE = 'application/jsonl; charset=utf-8';

/** Not marked as required: that would have JSON read out of YAML. */
const changeBody = {
  description: 'What to change.',
  content: {
    'application/json': { schema: schemas.configRequestSchema },
    'application/yaml': { schema: z.string() },
  },
};

/** The management API: thin, everything it says comes from `surface`. */
export function makeApp(surface: Surface, log: Logger) {
  const app = new OpenAPIHono<Env>({
    defaultHook: (result) => {
      if (!result.success) throw unreadable(result.error as z.ZodError);
    },
  });
  app.onError((error, c) => refuse(c, error, log));
  app.notFound((c) =>
    refuse(c, new ApiFault(404, 'not_found', `There is no ${c.req.method} ${c.req.path}.`), log),
  );

  // The page and the description below say nothing of this installation, and are open.
  app.use('/api/v1/*', permitted);
  app.use('/metrics', permitted);

  app.get('/', (c) => c.html(PAGE, 200, { 'content-security-policy': PAGE_POLICY }));
  app.get('/metrics', async (c) => c.body(await surface.metrics(), 200, { 'content-type': METRICS_TYPE }));
  app.doc31('/api/openapi.json', {
    openapi: '3.1.0',
    info: {
      title: 'Armature',
      version: '1',
      description: 'What a running Armature shows, and what may be changed live.',
    },
  });
  addState(app, surface);
  addLists(app, surface);
  addConfig(app, surface);
  addKeys(app, surface);
  addLedger(app, surface);
  addSessions(app, surface);
  addReleases(app, surface);
  addRegistry(app, surface);
  addDecisions(app, surface);
  addParity(app, surface);
  addDrift(app, surface);
  addRetirements(app, surface);
  return app;
}

const permitted: MiddlewareHandler<Env> = async (c, next) => {
  const { caller } = c.env;
  if ('status' in caller) {
    if (caller.status === 401) c.header('www-authenticate', 'Bearer');
    throw new ApiFault(caller.status as ApiFault['status'], caller.code, caller.message);
  }
  c.set('actor', caller.actor);
  await next();
};

function addState(app: App, surface: Surface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/status',
      summary: 'Everything at a glance, what is wrong first.',
      responses: { 200: json(statusSchema, 'The state now.'), ...errors },
    }),
    async (c) => c.json(await surface.status(), 200),
  );
}

function addLists(app: App, surface: Surface): void {
  const list = <Item extends z.ZodObject<{ name: z.ZodString }>>(
    path: string,
    item: Item,
    summary: string,
    all: () => { name: string }[] | Promise<{ name: string }[]>,
  ) =>
    app.openapi(
      createRoute({
        method: 'get',
        path,
        summary,
        request: { query: schemas.pageQuery },
        responses: { 200: json(pageOf(item), 'One page, sorted by name.'), ...errors },
      }),
      async (c) => c.json(page(await all(), ({ name }) => name, c.req.valid('query')) as never, 200),
    );
  list('/api/v1/routes', schemas.routeSchema, 'Routes.', () => surface.routes());
  list('/api/v1/backends', schemas.backendSchema, 'Backends and their endpoints.', () => surface.backends());
  list('/api/v1/tenants', schemas.tenantSchema, 'Tenants.', () => surface.tenants());
  list('/api/v1/models', schemas.modelSchema, 'Models of local backends.', () => surface.models());
}

function addConfig(app: App, surface: Surface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/config',
      summary: 'The running configuration, with the origin of each value.',
      responses: { 200: json(schemas.configSchema, 'Secrets are masked.'), ...errors },
    }),
    (c) => c.json(surface.config(), 200),
  );
  app.openapi(
    createRoute({
      method: 'put',
      path: '/api/v1/config',
      summary: 'Changes values live; they stand over the file and survive restarts.',
      request: { body: changeBody },
      responses: {
        200: json(schemas.configChangedSchema, 'Stored, and running.'),
        ...errors,
        409: json(schemas.errorSchema, 'It contradicts what is in force.'),
        503: json(schemas.errorSchema, 'It could not be stored, and does not run.'),
      },
    }),
    async (c) => c.json(await surface.changeConfig(await c.req.text(), c.var.actor), 200),
  );
}

function addKeys(app: App, surface: Surface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/keys',
      summary: 'Keys that were made live, revoked ones included.',
      request: { query: schemas.pageQuery },
      responses: { 200: json(pageOf(schemas.keySchema), 'One page, oldest first.'), ...errors },
    }),
    async (c) =>
      c.json(
        page(await surface.keys(), ({ id }) => id, c.req.valid('query')),
        200,
      ),
  );
  app.openapi(
    createRoute({
      method: 'post',
      path: '/api/v1/keys',
      summary: 'Makes a key for a tenant.',
      request: { body: { ...json(schemas.keyRequestSchema, 'For whom.'), required: true } },
      responses: { 201: json(schemas.newKeySchema, 'The key, this once.'), ...errors, ...notFound },
    }),
    async (c) => c.json(await surface.createKey(c.req.valid('json'), c.var.actor), 201),
  );
  app.openapi(
    createRoute({
      method: 'delete',
      path: '/api/v1/keys/{id}',
      summary: 'Revokes a key.',
      request: { params: idParam },
      responses: { 200: json(schemas.keySchema, 'Revoked.'), ...errors, ...notFound },
    }),
    async (c) => c.json(await surface.revokeKey(c.req.valid('param').id, c.var.actor), 200),
  );
}

function addLedger(app: App, surface: Surface): void {
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/events',
      summary: 'Events as JSON lines, oldest first.',
      request: { query: schemas.eventsQuery },
      responses: {
        200: {
          description: 'One event a line.',
          content: { 'application/jsonl': { schema: schemas.eventSchema } },
        },
        ...errors,
        ...notFound,
      },
    }),
    async (c) => {
      const { follow, ...query } = c.req.valid('query');
      const gone = new AbortController();
      const asked = { ...query, follow: follow === '1' || follow === 'true', signal: gone.signal };
      const body = lines(await surface.events(asked), () => gone.abort());
      // The types know JSON and text, and no stream.
      return c.body(body, 200, { 'content-type': EVENTS_TYPE }) as never;
    },
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/why/{id}',
      summary: 'The chain of causes behind a request or an action.',
      request: { params: idParam },
      responses: { 200: json(schemas.whySchema, 'Newest decision first.'), ...errors, ...notFound },
    }),
    async (c) => c.json(known(await surface.why(c.req.valid('param').id), c), 200),
  );
  app.openapi(
    createRoute({
      method: 'get',
      path: '/api/v1/requests/{id}',
      summary: 'The full record of one request.',
      request: { params: idParam },
      responses: { 200: json(schemas.requestSchema, 'The record.'), ...errors, ...notFound },
    }),
    async (c) => c.json(known(await surface.request(c.req.valid('param').id), c), 200),
  );
}

const encoder = new TextEncoder();

/** `onGone` is called when the reader leaves: it may do so while the next event is waited for. */
function lines(events: AsyncIterable<LedgerEvent>, onGone: () => void): ReadableStream<Uint8Array> {
  const iterator = events[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next = await iterator.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`));
    },
    cancel: onGone,
  });
}

function page<Item>(
  all: readonly Item[],
  keyOf: (item: Item) => string,
  asked: { limit: number; after?: string | undefined },
) {
  const from = asked.after === undefined ? 0 : all.findIndex((item) => keyOf(item) === asked.after) + 1;
  if (asked.after !== undefined && from === 0)
    throw new ApiFault(404, 'not_found', `There is nothing called '${asked.after}' to come after.`);
  const data = all.slice(from, from + asked.limit);
  return { data, next: from + asked.limit < all.length ? keyOf(data.at(-1)!) : null };
}

function known<Found>(found: Found | undefined, c: Context): Found {
  if (found === undefined)
    throw new ApiFault(404, 'not_found', `Nothing is known of '${c.req.param('id')}'.`);
  return found;
}

function refuse(c: Context, error: Error, log: Logger): Response {
  const fault = faultOf(error);
  if (fault.status === 500) log.error({ err: error, path: c.req.path }, 'the management API failed');
  const { status, code, message, faults } = fault;
  return c.json({ error: { code, message, ...(faults && { faults }) } }, status);
}

function faultOf(error: Error): ApiFault {
  if (error instanceof ApiFault) return error;
  if ('trouble' in error)
    return new ApiFault(503, 'store_unavailable', `The store cannot be used: ${error.message}`);
  // Hono's own, about bodies.
  const status = error instanceof HTTPException ? error.status : 500;
  if (status === 415) {
    return new ApiFault(
      415,
      'invalid_request',
      'Say what the body is, such as content-type: application/json.',
    );
  }
  if (status < 500) return new ApiFault(400, 'invalid_request', error.message);
  return new ApiFault(500, 'internal', 'This is a fault in Armature; its log says more.');
}
