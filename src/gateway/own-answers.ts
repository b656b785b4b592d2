import { ERRORS, type Failure } from '../kernel/errors.ts';
import { oipErrorBody, serverMetadata } from '../protocols/oip/answers.ts';
import {
  chatAnswer,
  chatAnswerStream,
  completionAnswer,
  completionAnswerStream,
} from '../protocols/openai/answer.ts';
import { openaiErrorBody } from '../protocols/openai/errors.ts';
import { modelObject, modelsList } from '../protocols/openai/models.ts';
import { type Call, isOipTarget, type OwnCall } from './call.ts';
import type { Exchange } from './exchange.ts';
import { retiredRoute } from './failures.ts';
import { mayCall } from './identify.ts';
import type { World } from './state/world.ts';

/** Answers that no engine gives: errors, lists, health, and the ladder's fixed text. */

export const JSON_TYPE = ['content-type', 'application/json'] as const;
export const STREAM_TYPE = [
  'content-type',
  'text/event-stream; charset=utf-8',
  'cache-control',
  'no-cache, no-transform',
  'x-accel-buffering',
  'no',
] as const;

export interface OwnAnswer {
  status: number;
  headers: string[];
  body: Buffer | string;
}

/** A failure as the caller's protocol tells it. 429 and 503 always say when to come again. */
export function failureAnswer(failure: Failure, target: string): OwnAnswer {
  const status = failure.status ?? ERRORS[failure.code].status;
  const headers: string[] = [...JSON_TYPE];
  if (status === 401) headers.push('www-authenticate', 'Bearer');
  if (failure.allow !== undefined) headers.push('allow', failure.allow);
  if (status === 429 || status === 503) headers.push('retry-after', String(failure.retryAfterSeconds ?? 1));
  if (!(failure.shouldRetry ?? ERRORS[failure.code].retryable)) headers.push('x-should-retry', 'false');
  return { status, headers, body: isOipTarget(target) ? oipErrorBody(failure) : openaiErrorBody(failure) };
}

/** What the gateway answers by itself; a failure where the named thing is not the tenant's to see. */
export function ownAnswer(
  own: OwnCall,
  tenant: string,
  world: World,
  server: { version: string; unready: boolean },
): OwnAnswer | Failure {
  const created = Math.floor(Date.parse('2026-01-01T00:00:00Z') / 1000);
  switch (own.own) {
    case 'models':
      return ok(modelsList(namesFor(tenant, world), created));
    case 'model':
      if (namesFor(tenant, world).includes(own.name))
        return ok(JSON.stringify(modelObject(own.name, created)));
      return world.routes.has(own.name) && mayCall(world, tenant, own.name)
        ? retiredRoute(own.name)
        : unknownRoute(own.name, tenant, world);
    case 'oip-live':
      return ok('{"live":true}');
    case 'oip-ready':
      return server.unready ? { ...ok('{"ready":false}'), status: 503 } : ok('{"ready":true}');
    case 'oip-server':
      return ok(serverMetadata(server.version));
  }
}

/** The routes and pipelines that answer this tenant. */
function namesFor(tenant: string, world: World): string[] {
  const inService = [...world.routes].flatMap(([name, { settings }]) => (settings.retired ? [] : name));
  return [...inService, ...world.pipelines.keys()].filter((name) => mayCall(world, tenant, name));
}

/** No such route, as far as this tenant may know; a near name is told only where it is one that it may call. */
export function unknownRoute(name: string, tenant: string, world: World): Failure {
  const shown = name.slice(0, 200);
  const near = namesFor(tenant, world).find(
    (route) => route !== name && route.toLowerCase() === name.toLowerCase(),
  );
  const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
  return {
    code: 'unknown_route',
    message: `The model '${shown}' does not exist: no route has that name.${hint}`,
    phase: 'before-queue',
    param: 'model',
    shouldRetry: false,
  };
}

/** The ladder's fixed text, framed as the call asks; undefined where a text is no answer. */
export function fixedAnswer(x: Exchange, call: Call, text: string): OwnAnswer | undefined {
  if (call.protocol !== 'openai' || call.kind === 'embeddings') return undefined;
  const answer = { id: x.id, created: Math.floor(x.wallMs / 1000), model: call.route, text };
  if (call.stream) {
    const frame = call.kind === 'chat' ? chatAnswerStream : completionAnswerStream;
    return { status: 200, headers: [...STREAM_TYPE], body: frame(answer, call.request.usageAsked === true) };
  }
  return ok((call.kind === 'chat' ? chatAnswer : completionAnswer)(answer));
}

function ok(body: string): OwnAnswer {
  return { status: 200, headers: [...JSON_TYPE], body };
}
