import type { Outcome, Step } from '../events/contracts.ts';
import type { Bagged } from '../kernel/bag.ts';
import type { Failure } from '../kernel/errors.ts';
import { type Priority, rankOf } from '../kernel/priorities.ts';
import { Scope } from '../kernel/scope.ts';
import type { TimerHandle } from '../kernel/timers.ts';
import type { Snapshot } from '../links/messages.ts';
import type { RequestKey } from './answers/key.ts';
import type { Call, StatefulCall } from './call.ts';
import type { AnswerListener, Caller, FittedBody, InnerTerms } from './contracts.ts';
import type { Cost } from './cost.ts';
import type { Attempt } from './dispatch/attempt.ts';
import type { Hedge } from './dispatch/hedge.ts';
import type { Reservation } from './quota/reservation.ts';
import type { SessionMove } from './record/session-moves.ts';
import type { Armed } from './release/arms.ts';
import type { Endpoint } from './state/endpoint.ts';
import type { Backend, Route, Target } from './state/world.ts';
import type { Tiering } from './tiers.ts';

/** One request on its way through the path: what is known of it, and what it has taken. */
export class Exchange implements Bagged {
  slot = -1;
  /** What answers go to; one that puts them another way may take its place before the request is planned. */
  caller: Caller;
  /** Everything it takes is given back when this closes. */
  readonly scope = new Scope();
  /** Armature's own id. */
  readonly id: string;
  /** What is echoed as x-request-id: the caller's, or Armature's. */
  readonly requestId: string;
  /** Monotonic and wall milliseconds at which it came. */
  readonly startedAt: number;
  readonly wallMs: number;
  readonly steps: Step[] = [];

  tenant = '';
  priority: Priority = 'standard';
  /** Its tenant's weight against others. */
  share = 1;
  /** What it was admitted on. */
  snapshot: Snapshot | undefined;
  /** What its targets were last looked up in. */
  lookedUpIn: Snapshot | undefined;
  call: Call | undefined;
  /** Of a call on what is stored; the call that it makes of an engine, if any, comes as `call`. */
  stateful: StatefulCall | undefined;
  /** Of a request that the gateway makes itself. */
  terms: InnerTerms | undefined;
  route: Route | undefined;
  /** What keeps it with others, within its tenant; undefined where nothing does. */
  session: string | undefined;
  /** What is remembered of its session goes by this; undefined where nothing is. */
  placeKey: string | undefined;
  /** What answered the turn before, where turns are kept. */
  last: { backend: string; model: string } | undefined;
  /** How its session moved with it; set when it is over. */
  move: SessionMove | undefined;
  /** The tier that it or its tenant asks for, where its route has tiers. */
  askedTier: string | undefined;
  tiering: Tiering | undefined;
  /** The arm that it belongs to, where its route is under release. */
  armed: Armed | undefined;
  /** A target stands in for the one that its session belongs to. */
  stoodIn = false;
  /** What beginnings of its prompt are known by, once it was asked for. */
  beginnings: Uint32Array | undefined;
  traceparent: { traceId: string; flags: string } | undefined;
  /** Monotonic. A whole answer, or the first content of a stream, is due by then. */
  deadlineAt = Number.POSITIVE_INFINITY;

  /** What it is reckoned to take of an engine; set once it is admitted. */
  cost: Cost = { tokensIn: 0, tokensOut: 1 };
  /**
   * What its tenant's quota is charged for it: a `pipeline` counts as a request and takes no tokens, each `stage` of it takes
   * its tokens alone.
   */
  charged: 'request' | 'pipeline' | 'stage' | 'nothing' = 'request';
  /** What it has taken of that; undefined where nothing is limited. */
  quota: Reservation | undefined;
  /** Tokens that a rung lets its answer have at most. */
  outputTokensMax: number | undefined;
  /**
   * A chat that is made to fit each backend that it is sent to, whatever its route says; see ContextFitter. `whole`: what does
   * not fit is refused.
   */
  fits: boolean | 'whole' = false;
  /** What was made so, the latest first; undefined where nothing was. */
  fitted: readonly FittedBody[] | undefined;
  /** What its answer is known by where answers are kept or shared; undefined where it has none. */
  key: RequestKey | undefined;
  /** It goes in place of several callers' requests: it is no caller's own, and neither counted nor charged. */
  isCarrier = false;
  /** Sees the answer that the caller gets. */
  listener: AnswerListener | undefined;

  /** Targets that it may go to now: the route's, or the one backend of a rung. */
  targets: readonly Target[] = [];
  /** The one endpoint that may answer it, where its state lies there. */
  only: Endpoint | undefined;
  /** The backend of its last attempt. */
  backend: Backend | undefined;
  readonly tried: Endpoint[] = [];
  /** Attempts that count, of all rungs; and of this rung. */
  attempts = 0;
  attemptsOfRung = 0;
  /** An attempt of it was on a connection that had been closed. */
  metStale = false;
  /** Place in the ladder; -1 is a full answer. */
  rung = -1;
  degraded: string | undefined;
  /** The attempt that answers it; where two run beside each other, the first of them. */
  attempt: Attempt | undefined;
  hedge: Hedge | undefined;
  /** What the caller would be told if nothing else helped. */
  failure: Failure | undefined;
  /** Why it did not get a place, where that is why it goes down the ladder or is refused. */
  shedFor: string | undefined;

  committed = false;
  /** The committed answer is an event stream. */
  streaming = false;
  over = false;
  outcome: Outcome | undefined;
  status = 0;
  tokensIn: number | undefined;
  tokensOut: number | undefined;
  firstContentAt: number | undefined;
  /** Milliseconds spent waiting: for a place, and for engines. */
  waitedMs = 0;
  upstreamMs = 0;
  timer: TimerHandle;
  /** Leaves the line it waits in; undefined where it waits in none. */
  leaveLine: (() => void) | undefined;

  constructor(caller: Caller, id: string, requestId: string, startedAt: number, wallMs: number) {
    this.caller = caller;
    this.id = id;
    this.requestId = requestId;
    this.startedAt = startedAt;
    this.wallMs = wallMs;
  }

  /** Place of its priority, 0 the highest. */
  get rank(): number {
    return rankOf(this.priority);
  }

  /** The phase for an error that ends it now. */
  get phase(): Failure['phase'] {
    if (this.committed) return 'committed';
    return this.attempts > 0 ? 'sent' : 'before-queue';
  }
}
