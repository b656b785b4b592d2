import { CANARY_IN_SHORT, CANARY_REASONS } from './canary-reasons.ts';
import { DRIFT_IN_SHORT, DRIFT_REASONS } from './drift-reasons.ts';
import { PARITY_IN_SHORT, PARITY_REASONS } from './parity-reasons.ts';
import { PROVING_IN_SHORT, PROVING_REASONS } from './proving-reasons.ts';
import { REGISTRY_REASONS } from './registry-reasons.ts';
import { RELEASE_REASONS } from './release-reasons.ts';

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
    '{count} requests to {route} by {tenant} ended {reason} in that second; {example} is one of them.',

  // The chain itself
  'cause-not-kept': 'The event {event}, which this follows from, is no longer in the ledger.',
  'chain-cut': 'More causes than can be told here: {left} are left out.',

  // Admission and waiting
  admitted: 'Admitted as {priority}, to be answered within {deadlineMs}[; its session is {session}].',
  'queue-full':
    'No place was free[ of {places}], and the queue was full: {waiting} waited, at most {max} may, and none of them had less right to its place[; it would have waited {waitMs}].',
  'would-miss-deadline':
    'No place was free of {places}, and {waiting} waited: {aheadTokens} tokens went before it, and then one more place had to come free, at {tokensPerSecond} tokens a second. {waitMs} of waiting and {serviceMs} until its answer did not fit into the {leftMs} left.',
  displaced:
    'With {waiting} of {max} waiting it gave its place in the queue to {by}, as {rule}; it was of {tenant}, as {priority}.',
  'lower-priority': 'Of the priorities with more than their floor of the queue, the lowest gives way.',
  'tenant-over-share': 'The tenant with the most waiting for its share gives way.',
  'priority-under-floor': 'A priority with less than its floor of the queue is given a place.',
  'too-late-to-serve':
    '{leftMs} of its deadline were left, and an answer takes {serviceMs}: it was not sent any more[; its wait had been predicted at {predictedMs}][, {waiting} others waited].',
  fits: 'Its turn was expected after {waitMs} and its answer {serviceMs} later, within the {leftMs} that were left.',
  waits:
    'No place was free: it waits, behind {aheadTokens} tokens of those who go first[; predicted: {waitMs} of waiting, and {serviceMs} until its answer].',
  floor: 'A lower priority had had less than its floor of {floor}: {owedTokens} tokens were due to it.',
  waited: 'Waited {waitedMs} for a place, as {priority}.',
  'quota-granted': 'The limit had room for it.',
  'quota-short':
    'The limit had {there} left of at most {max}, and {asked} was asked for; with {perSecond} more a second there is enough after {retryAfterMs}.',
  'quota-share-short':
    "Control did not answer, so that this worker's share of the limit counted, one of {workers}: it had {there} left of at most {max}, and {asked} was asked for.",
  'quota-never': 'The limit never allows more than {max} at once, and {asked} was asked for.',
  'quota-concurrency': 'All {max} requests that the tenant may have at once were running.',

  'held-for-start':
    'The host of {backend} is {state}: held for it, as the start should be over within {leftMs}[, of {expectedMs} that one takes], and the deadline leaves {deadlineMs}.',
  'start-too-long':
    'The host of {backend} is {state}, and is expected to serve in {leftMs} at the earliest[, of {expectedMs} that a start takes]; the deadline leaves {deadlineMs}.',

  // What is sent of a conversation
  'context-whole':
    'The whole conversation fits {backend}: its prompt has {counted} {tokens} tokens by {by}, of a window of {window} with {reserve} kept for the answer[ ({why})].',
  'context-dropped':
    'The conversation was too long for {backend}[, with {ofTokens} tokens]: {out} of {messages} messages were left out; what is sent has {counted} {tokens} tokens, by {by}.',
  'context-summarised':
    'The conversation was too long for {backend}[, with {ofTokens} tokens]: a summary stands for {out} of {messages} messages; what is sent has {counted} {tokens} tokens, by {by}.',
  'context-cut':
    'The last turn was too long for {backend}: the middle of its longest text was left out; what is sent has {counted} {tokens} tokens, by {by}, of a window of {window} with {reserve} kept for the answer.',
  'context-unfit':
    'What has to be kept of the conversation has {counted} {tokens} tokens by {by}, and {backend} has a window of {window} with {reserve} kept for the answer[ ({why})].',
  'context-without-summary': 'There was no summary of what was left out: {why}.',
  'context-answer-shorter':
    'The answer may have {room} tokens instead of {asked}: that is what the window leaves.',
  'context-not-accepted': '{backend} takes no {wants}.',

  // Where it goes
  'only-target': 'The route has one target that is well: {target}.',
  'target-by-weight': '{target} was drawn by weight among {targets} targets.',
  'target-by-session': '{target} is where this session goes, of {targets} targets.',
  'target-not-earlier':
    '{target} answered this session last and came later than {own}, where it would go by weight now: it does not go back.',
  'canary-by-session':
    'Its session is one of the {share} that the canary {canary} answers, by the release {release}.',
  'baseline-by-session':
    'Its session is one of those that the canary {canary} is compared with, by the release {release}, which has a share of {share}.',
  'stable-by-session':
    'Its session is not one of the {share} that the canary {canary} answers, by the release {release}.',
  'canary-not-earlier':
    'The canary {canary} answered this session last: it does not go back, though it counts as {arm} by the release {release} and its share of {share}.',
  'arm-stands-in':
    'No endpoint of {wanted}, where it belongs by the release {release}, could be used: another target stands in, which counts as a failure there.',
  'tier-by-rule': 'The tier {tier}, by rule {rule}[; {asked} was asked for].',
  'tier-by-order': 'No rule holds: {tier} is the tier of the first target[; {asked} was asked for].',
  'tier-kept':
    'Its session stays in the tier {tier}, which rule {rule} still allows[; {asked} was asked for].',
  'tier-stands-in':
    'The tier {tier} stands in for {wanted}[, by rule {rule}], which was {passed} at a load of {load}[; {asked} was asked for].',
  'next-tier': 'The tier {from} did not answer it[, as {for}]: another one is asked.',
  'no-tier': 'No endpoint of any of {tiers} tiers can be used now.',
  moved:
    'Its session had been answered by {from}[ ({fromTier})] and moved to {to}[ ({toTier})]: {reason}[, by {setting}].',
  'only-endpoint': '{endpoint} was the only endpoint with a free place.',
  'endpoint-by-session': '{endpoint} is where this session goes, of {endpoints} endpoints.',
  'prefix-kept':
    '{endpoint} has the beginning of this prompt, {matched} of {blocks} blocks; {load} tokens were in flight there, {least} at the least busy.',
  'prefix-placed':
    'Nobody has enough of the beginning of this prompt ({matched} of {blocks} blocks): {endpoint} is where it belongs; {load} tokens were in flight there, {least} at the least busy.',
  'prefix-yielded':
    '{endpoint} has the beginning of this prompt, {matched} of {blocks} blocks, but is too busy: {load} tokens were in flight there, {least} at the least busy.',
  'prefix-not-placed':
    'Nobody has enough of the beginning of this prompt ({matched} of {blocks} blocks), and {endpoint}, where it belongs, is busier than others: {load} tokens were in flight there, {least} at the least busy.',
  'less-cost-of-two':
    '{endpoint} cost less of two that were drawn, at a load of {first} and {second} tokens[, {firstOthers} and {secondOthers} requests of others][, {firstMs} and {secondMs} for an answer].',

  'no-endpoint':
    'None of {endpoints} endpoints could be used: {unwell} did not answer their probes, {open} had an open breaker, {cooling} had asked to be left alone.',
  sent: 'Sent to {endpoint} of {backend}, attempt {attempt}; {inflight} of {limit} were in flight there.',
  'sent-on-fresh-connection':
    'Sent to {endpoint} of {backend} on a fresh connection, attempt {attempt}; {inflight} of {limit} were in flight there.',
  trial: 'Sent to {endpoint} of {backend} to try whether it is well again, attempt {attempt}.',

  // The ladder
  'other-backend': 'Down the ladder: rung {rung}, the backend {backend}[, as {for}].',
  'fixed-answer': 'Down the ladder: rung {rung}, a fixed answer[, as {for}].',
  'shorter-answer':
    'Down the ladder: rung {rung}, an answer of at most {tokensMax} tokens from the same targets[, as {for}].',
  'rung-held':
    'Straight to rung {rung}, where requests of this priority are held[ for {dwellLeftMs} at least]: {waiting} waited, {used} of {places} places were taken, and full answers would take {inFull} of them.',
  'full-tried':
    'Requests of this priority climb from rung {rung} to see whether full answers fit: nobody waited, {used} of {places} places were taken, though full answers would take {inFull} of them if they came as often.',
  'rung-not-held': 'Requests of this priority are not held at a rung.',
  'rung-left':
    'Requests of this priority climb from rung {rung} to full answers: nobody waited, {used} of {places} places were taken, and full answers would take {inFull} of them.',
  'cached-answer':
    'Down the ladder: rung {rung}, an answer that {backend} gave {ageMs} before to the same request.',

  // The stages of a pipeline
  'stage-answered':
    'Stage {stage} answered after {tookMs}[, of {budgetMs} that it had][, by {backend}][, by its rung {rung}][, at a cost of {cost}][; it found {class}].',
  'stage-failed':
    'Stage {stage} gave no answer: {code} ({status}) after {tookMs}[, of {budgetMs} that it had][, from {route}].',
  'stage-answered-each':
    'Stage {stage} asked for each item: {asked} asked, {items} found after {tookMs}[, {failed} without an answer].',
  'item-failed': 'Item {item} of stage {stage} had no answer: {code}[, status {status}]; then: {then}.',
  'stage-not-run': 'Stage {stage} was not run: {when} does not hold[ ({cause})].',
  'stage-rerouted': 'Stage {stage} asked the route {route} instead.',
  'stage-chosen': 'Stage {stage} takes what {chosen} has said.',
  'stage-made': 'Stage {stage} is made of what others found: {items} items.',
  'stage-given': 'Stage {stage} had nothing to ask about[; it found {class}].',
  'stage-skipped': 'Stage {stage} was skipped: for those after it, its text is empty.',
  'stage-stood-in': 'The fixed text of stage {stage} stood in for its answer.',
  'stage-cancelled': 'Stage {stage} was cancelled after {tookMs}: nobody wanted its answer any more.',

  // Answers that are kept and shared
  'kept-answer': 'The answer was kept: {backend} gave it {ageMs} before to the same request.',
  'single-flight': 'The same request was in the air: this one gets its answer, as {others} before it.',
  batched:
    'Went upstream as one with others: {callers} requests with {inputs} inputs, after waiting {waitedMs} for them.',
  'batch-refused': 'The engine found the joined request of {callers} wrong: each goes by itself.',
  'batch-unclear':
    'The answer to the joined request of {callers} could not be taken apart: each goes by itself.',
  'batch-too-long':
    'There was no room for the answer to the joined request of {callers}: each goes by itself.',
  'not-joined': 'There was no room for a joined request of {callers}: each goes by itself.',

  // Texts that become tokens here
  prepared: '{texts} texts became {tokens} tokens in {tookMs}.',
  'prepared-batch':
    'Went upstream in a batch of {texts} texts of {callers} callers: {tokens} tokens, {padded} with padding.',
  'not-prepared-full': 'Its texts did not become tokens: {waiting} texts wait for that already.',
  'not-prepared-late': 'Its texts did not become tokens: the deadline had passed when their turn came.',
  'not-prepared-unreadable': 'Its texts did not become tokens: {why}.',
  'not-prepared-broken': 'Its texts did not become tokens, and were tried twice: {why}.',

  // How the answer ended
  committed: 'The answer began: from here on the caller has a part of it.',
  answered: 'The answer was whole[: {bytes}].',
  'deadline-passed': 'The deadline of {deadlineMs} passed[ after {attempts} attempts].',
  'caller-left': 'The caller left before its answer was whole.',

  // Batches
  'batch-created': 'A batch was made of the file {inputFile}, for {endpoint}.',
  'batch-began': 'Its file was read whole, and its {lines} lines are asked.',
  'batch-resumed':
    'A worker went on with it where it stood: of {lines} lines {completed} were answered and {failed} had failed.',
  'batch-completed': 'All of its {lines} lines are over: {completed} were answered, {failed} failed.',
  'batch-failed':
    'Its file cannot be a batch, and no line was asked. The first fault[, in line {line}]: {fault}.',
  'batch-expired':
    'Its completion window was over: of {lines} lines {completed} were answered and {failed} had failed.',
  'batch-cancelled': 'It was cancelled: of {lines} lines {completed} were answered and {failed} had failed.',

  // Order, breakers, retries
  'only-priority': 'Nobody of another priority waited.',
  'highest-priority': 'The highest priority that waited had its turn.',
  trickle: 'One place of {one} goes to the lower priorities in turn, so that nobody starves.',
  'breaker-closed': 'The breaker of the endpoint closed: it answers well.',
  'breaker-open': 'The breaker of the endpoint was open for another {forMs}.',
  'breaker-trial':
    'The request was let through to try whether the endpoint is well again[ (openings so far: {openings})].',
  'breaker-opened':
    'The breaker of the endpoint opened: {inARow} failures in a row, {failures} of its last {answers} answers[, opening {openings} in a row].',
  'breaker-tried': 'The breaker of the endpoint is half open: one request at a time is let through on trial.',
  'endpoint-cooled': 'The endpoint asked to be left alone for {forMs}.',
  'retry-granted':
    'Another attempt was within the retry budget[ ({saved} left, earning {budget} a request)].',
  'retry-budget-spent':
    'No further attempt: the retry budget is spent[ ({saved} left, earning {budget} a request)].',
  'retry-at-once': 'Another endpoint was left to ask, and time for it: {leftMs}.',
  'retry-after-pause':
    'Nobody else was left to ask: another attempt after a pause of {pauseMs}, with {leftMs} left.',
  'retry-too-late':
    'No further attempt: {leftMs} of the deadline were left[, and such an answer usually takes {usualMs}].',

  // Second attempts beside the first
  'hedge-granted':
    'No answer had come after {afterMs}: a second attempt was within the budget of hedges ({saved} left, earning {budget} a request).',
  'hedge-budget-spent':
    'No answer had come after {afterMs}, but the budget of hedges was spent ({saved} left, earning {budget} a request).',
  'hedge-without-place': 'No other endpoint had a free place for a second attempt.',
  'hedge-won':
    'The second attempt answered first: the one at {endpoint} was cancelled after {tookMs}; it had been reckoned at {tokens} tokens.',
  'hedge-lost':
    'The first attempt answered first: the second, at {endpoint}, was cancelled after {tookMs}; it had been reckoned at {tokens} tokens.',

  // How an attempt failed
  'connection-refused': '{endpoint} refused the connection.',
  'connect-timeout': 'No connection to {endpoint} came about in time.',
  'connection-lost': '{endpoint} broke the connection off[ after {tookMs}].',
  'stale-connection': '{endpoint} had closed a connection that was kept from earlier.',
  'not-http': '{endpoint} answered something that is not HTTP.',
  'tls-failed': 'No trusted connection to {endpoint} came about.',
  'engine-refused': 'The engine refused the request[ with {status}]; its answer was passed on.',
  'engine-busy': '{endpoint} asked to be left alone[ for {coolMs}][: it answered {status}].',
  'credentials-refused': "{endpoint} refused Armature's own credentials.",
  'engine-failed': '{endpoint} failed[ with status {status}][ after {tookMs}].',
  'error-event': 'The engine told of an error[ of its own at {endpoint}][ after {tookMs}].',
  'first-byte-timeout': '{endpoint} sent nothing within the time for its first byte[: {tookMs}].',
  'idle-timeout': 'The engine fell silent for longer than it may[, {tookMs} after it was asked].',
  'total-timeout': 'The answer took longer than it may[: {tookMs}].',
  'no-answer': 'The engine answered with something that is no answer.',
  'cut-answer': 'The engine broke off in the middle of its answer.',
  'cut-stream': 'The engine ended its stream too early.',
  'empty-stream': 'The engine ended its stream before the first word.',
  'event-too-large': 'The engine sent an event without an end.',

  // The configuration and what is published
  'snapshot-published': 'Snapshot {number} was published[, with {keys} live keys].',
  'configuration-changed':
    '{actor} changed the configuration; values that changed: {changes}[; these wait for a restart: {restart}].',
  'certificates-renewed': 'Certificates were renewed, and are read again: {files}.',
  'value-changed': '{path} was changed from {before} to {after}.',
  'value-set': '{path} was set to {after}.',
  'value-removed': '{path}, which was {before}, was taken out.',
  'configuration-refused': 'A configuration of {actor} was refused: {faults}.',
  'overlay-agreed': 'The file says the same as the live change of {path}, which is not needed any more.',
  'overlay-refused': 'The live change of {path} is refused: {message}.',
  'key-created': 'A key was created for {tenant}[, called {name}]: {key}.',
  'key-revoked': 'A key of {tenant}[, called {name},] was revoked: {key}.',

  // What is taken out of service
  'retirement-started':
    '{actor} began to retire the {what} {name}[, a target of {routes}]: {callers} tenants had called it since {since}.',
  'retirement-drained': 'Nobody is sent to the {what} {name} any more, and {inflight} requests run there.',
  'retirement-exported': '{events} events about the {what} {name} are written to {folder}, {bytes} long.',
  'retirement-called': '{tenant} still calls the {what} {name}, {count} times: it is watched anew.',
  'retirement-proven':
    'Nobody has called the {what} {name} for {quietMs}, and nothing runs there at any of {workers} workers.',
  'retirement-finishing': '{actor} has the last step made of retiring the {what} {name}.',
  'retirement-finished': 'The {what} {name} is retired[; keys were revoked: {keys}].',
  'retirement-undone': '{actor} took back the retirement of the {what} {name}: it is as it was.',

  ...DRIFT_REASONS,

  ...PARITY_REASONS,

  // Sessions
  'session-moved':
    'A session of {tenant} moved from {from}[ ({fromTier})] to {to}[ ({toTier})]: {reason}[, by {setting}].',
  'sessions-moved': '{count} more sessions of {route} moved within a second than are told one by one.',
  'session-removed': 'A session of {tenant} was removed: turns, {turns}.',
  'response-not-kept': 'An answer of {tenant} could not be kept: {why}.',

  // Endpoints and hosts
  'endpoint-well': 'The endpoint answers its probes again: {inARow} in a row[ with {status}].',
  'endpoint-unwell':
    'The endpoint does not answer its probes well: {inARow} bad in a row[, the last with {status}][, the last failed: {error}].',
  'probe-refused': 'The probe {url} is not answered as one ({status}): {hint}.',
  'gauges-unread':
    "The engine's own gauges at {url} cannot be read any more[ ({status})][: {fault}]; it is chosen without them.",
  'gauges-read': "The engine's own gauges can be read again.",
  'host-ready': 'The model host serves at {addresses}[; its start took {tookMs}].',
  'host-idle-stopped':
    'The host of {backend} is stopped: nobody has asked for it for {idleMs}, and it may be idle for {idleStopMs}.',
  'host-woken':
    'The host of {backend}, which was idle, was woken[ by a request, {request}][ by the release {release}].',
  'host-gone': 'The model host is gone.',

  // Processes
  'part-started': '{part} was started as process {pid}.',
  'part-adopted': '{part}, process {pid}, went on under a new supervisor.',
  'part-left': '{part} left[; another starts in {restartInMs}].',
  'part-died': '{part} died[ with exit code {exitCode}][ by {signal}][; another starts in {restartInMs}].',
  'worker-died':
    'The worker {part} died[ with exit code {exitCode}][ by {signal}]: requests in it were cut off, and what it had recorded in its last turn is lost[; another starts in {restartInMs}].',

  // Releases
  ...CANARY_REASONS,
  ...REGISTRY_REASONS,
  ...RELEASE_REASONS,
  ...PROVING_REASONS,

  // The ledger
  'events-dropped': '{count} events were dropped: {reason}.',
  'events-lost': '{count} events were lost while the ledger could not be written.',
} as const satisfies Record<string, string>;

/** Codes as parts of other sentences: what brought a request down the ladder, and by which rule one gave way. */
export const IN_SHORT: Readonly<Record<string, string>> = {
  'would-miss-deadline': 'its turn would have come too late',
  'queue-full': 'the queue was full',
  displaced: 'its place in the queue went to another',
  'too-late-to-serve': 'its turn came too late',
  quota_exceeded: 'a limit of the tenant was used up',
  draining: 'the gateway was shutting down',
  'preprocessing-full': 'too many texts waited to become tokens',
  'buffers-full': 'there was no room to hold it',
  overloaded: 'there was no room',
  backend_unavailable: 'no endpoint could be used',
  backend_error: 'the engine failed',
  deadline_exceeded: 'no answer came in time',
  'lower-priority': 'the lowest priority with more than its floor of the queue gives way',
  'tenant-over-share': 'the tenant with the most waiting for its share gives way',
  'priority-under-floor': 'a priority with less than its floor of the queue is given a place',
  ...CANARY_IN_SHORT,
  ...DRIFT_IN_SHORT,
  ...PROVING_IN_SHORT,
  ...PARITY_IN_SHORT,
};
