/**
 * Every code of a reason, and what it says: decisions of the path and its policies, and types of events. `words.ts` tells
 * what braces and brackets mean. A test holds that no code of the program is missing here.
 */
export const REASONS = {
  // A request as a whole
  'request-answered':
    'Answered with {status} after {durationMs}[ by {backend}][ at {endpoint}][, attempts: {attempts}].',
  'request-degraded': 'Answered in a rougher form, by the rung {rung}, with {status} after {durationMs}.',
  'request-refused': 'Refused with {status}[ {code}] after {durationMs}.',
  'request-failed':
    'Failed with {status}[ {code}] after {durationMs}[, attempts: {attempts}][, the last at {endpoint}].',
  'request-aborted': 'The caller left after {durationMs}[ while {backend} was answering].',
  'request-invalid': 'Sent back with {status}[ {code}] as the request is wrong.',

  // Requests without a record of their own
  'record-not-kept':
    'This request has no record of its own: in its second more requests came than records are kept of. What is known is how many of each kind came in that second.',
  'record-not-found':
    'This request has no record, nor any count of its second: it was in a worker that died, or its record is no longer kept.',
  'requests-grouped':
    '{count} requests to {route} by {tenant} ended as {reason} in that second; {example} is one of them.',

  // The chain itself
  'cause-not-kept': 'The event {event}, which this follows from, is no longer in the ledger.',
  'chain-cut': 'More causes than can be told here: {left} are left out.',

  // Admission
  admitted: 'Admitted as {priority}, to be answered within {deadlineMs}.',

  // Where it goes
  'only-target': 'The route has one target that is well: {target}.',
  'target-by-weight': '{target} was drawn by weight among {targets} targets.',
  'target-by-session': '{target} is where this session goes, of {targets} targets.',
  'only-endpoint': '{endpoint} was the only endpoint with a free place.',
  'endpoint-by-session': '{endpoint} is where this session goes, of {endpoints} endpoints.',
  'less-in-flight-of-two':
    '{endpoint} had less in flight of two drawn among {endpoints} endpoints ({first} and {second}).',

  // Order, breakers, retries
  'only-priority': 'Nobody of another priority waited.',
  'highest-priority': 'The highest priority that waited had its turn.',
  'trickle-to-lowest': 'One place of {one} goes to the lowest priority, so that nobody starves.',
  'breaker-closed': 'The breaker of the endpoint was closed.',
  'breaker-open': 'The breaker of the endpoint was open for another {forMs}.',
  'breaker-trial':
    'The request was let through to try whether the endpoint is well again[ (openings so far: {openings})].',
  'retry-granted':
    'Another attempt was within the retry budget[ ({saved} left, earning {budget} a request)].',
  'retry-budget-spent':
    'No further attempt: the retry budget is spent[ ({saved} left, earning {budget} a request)].',

  // How an attempt failed
  'connection-refused': 'The endpoint[ {endpoint}] refused the connection.',
  'connect-timeout': 'No connection to the endpoint[ {endpoint}] came about in time.',
  'connection-lost': 'The endpoint[ {endpoint}] broke the connection off.',
  'stale-connection': 'A connection kept from earlier was closed by the endpoint[ {endpoint}] just then.',
  'not-http': 'The endpoint[ {endpoint}] answered something that is not HTTP.',
  'tls-failed': 'No trusted connection to the endpoint[ {endpoint}] came about.',
  'engine-refused': 'The engine refused the request[ with status {status}]; its answer was passed on.',
  'engine-busy': 'The engine asked to be left alone[ with status {status}][ for {coolMs}].',
  'credentials-refused': "The engine refused Armature's own credentials[ with status {status}].",
  'engine-failed': 'The engine failed[ with status {status}].',
  'error-event': 'The engine failed before its first word.',
  'first-byte-timeout': 'The engine sent nothing in time[ ({ms})].',
  'idle-timeout': 'The engine fell silent for too long[ ({ms})].',
  'total-timeout': 'The answer took longer than it may[ ({ms})].',

  // The configuration and what is published
  'snapshot-published': 'Snapshot {number} was published[: {keys} keys].',
  'configuration-refused': 'The configuration was refused: {faults}.',
  'key-created': 'A key was created for {tenant}[, called {name}]: {key}.',
  'key-revoked': 'A key of {tenant}[, called {name},] was revoked: {key}.',

  // Endpoints and hosts
  'endpoint-well': 'The endpoint is well again.',
  'endpoint-unwell': 'The endpoint no longer answers its probes.',
  'probe-refused': 'The probe {url} is not answered as one ({status}): {hint}.',
  'host-ready': 'The model host serves at {addresses}.',
  'host-gone': 'The model host is gone.',

  // The ledger
  'events-dropped': '{count} events were dropped: {reason}.',
  'events-lost': '{count} events were lost while the ledger could not be written.',
} as const satisfies Record<string, string>;

export type ReasonCode = keyof typeof REASONS;
