import { ERRORS, type Failure, invalidRequest } from '../kernel/errors.ts';
import type { Call } from './call.ts';

/** What the path itself tells a caller, in words. */

export function forbidden(route: string): Failure {
  return {
    code: 'forbidden',
    message: `This key may not call '${route}'.`,
    phase: 'before-queue',
    status: ERRORS.forbidden.status,
    shouldRetry: false,
  };
}

/** None of the route's targets answers such a call. */
export function noTarget(call: Call, retired: boolean): Failure {
  return retired ? retiredRoute(call.route) : wrongProtocol(call);
}

export function retiredRoute(name: string): Failure {
  return {
    code: 'unknown_route',
    message: `'${name}' was retired: it answers nobody any more.`,
    phase: 'before-queue',
    status: ERRORS.unknown_route.status,
    shouldRetry: false,
  };
}

export function wrongProtocol(call: Call): Failure {
  const speaks = call.protocol === 'openai' ? 'the Open Inference Protocol' : "OpenAI's API";
  return invalidRequest(`'${call.route}' speaks ${speaks}, and cannot answer this call.`, 'model');
}

export function nothingKept(path: string): Failure {
  return {
    code: 'not_found',
    message: `There is nothing at ${path.slice(0, 200)}: this gateway keeps no state.`,
    phase: 'before-queue',
  };
}

export function drainingFailure(): Failure {
  return {
    code: 'draining',
    message: 'This gateway is shutting down. Try again: another one, or the next one, will answer.',
    phase: 'before-queue',
    retryAfterSeconds: 1,
  };
}

/** Every endpoint that is well asked to be left alone; the first may be asked again in `earliestMs`. */
export function allCooling(route: string, earliestMs: number): Failure {
  return {
    code: 'overloaded',
    message: `Every endpoint of '${route}' that is well asked to be left alone for a while.`,
    phase: 'before-queue',
    retryAfterSeconds: Math.max(1, Math.ceil(earliestMs / 1000)),
  };
}

export function noEndpoint(route: string, endpoints: number): Failure {
  const why = endpoints === 0 ? 'none has started yet' : 'all are fenced or unwell';
  return {
    code: 'backend_unavailable',
    message: `No endpoint of '${route}' can be used now: ${why}.`,
    phase: 'before-queue',
  };
}

/** Its host does not serve in time; it is expected to in `leftMs`. */
export function hostStarting(backend: string, leftMs: number): Failure {
  return {
    code: 'overloaded',
    message: `The host of '${backend}' is starting, and will not answer in time.`,
    phase: 'before-queue',
    retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
  };
}

export function queueFull(route: string, waiting: number): Failure {
  return {
    code: 'overloaded',
    message: `All places of '${route}' are taken, and ${waiting} requests wait already.`,
    phase: 'before-queue',
  };
}

export function wouldMiss(route: string, phase: Failure['phase']): Failure {
  return {
    code: 'overloaded',
    message: `All places of '${route}' are taken, and no answer would come within the deadline.`,
    phase,
  };
}

/** Others came whose claim to its place in the queue was better. */
export function displaced(route: string): Failure {
  return {
    code: 'overloaded',
    message: `All places of '${route}' are taken, and the queue is full of requests that go first.`,
    phase: 'queued',
  };
}

/** `what`: what was not there in time. */
export function deadlinePassed(ms: number, what: string, phase: Failure['phase']): Failure {
  return { code: 'deadline_exceeded', message: `The deadline of ${ms} ms passed before ${what}.`, phase };
}
