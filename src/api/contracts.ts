import type { z } from '@hono/zod-openapi';
import { faultsIn } from '../config/faults-in.ts';
import type { LedgerEvent } from '../events/contracts.ts';
import type { EventsAsked } from '../events/reading.ts';
import type { DecisionsSurface } from './decisions.ts';
import type { DriftSurface } from './drift.ts';
import type { ParitySurface } from './parity.ts';
import type { RegistrySurface } from './registry.ts';
import type { ReleasesSurface } from './releases.ts';
import type { RetirementsSurface } from './retirements.ts';
import type * as schemas from './schemas.ts';
import type { Status } from './status-schema.ts';

export type { DecisionsSurface, DecisionView } from './decisions.ts';
export type { DriftSurface } from './drift.ts';
export type { DriftView } from './drift-schema.ts';
export type { CertificateView, ParityMatrix, ParitySurface } from './parity.ts';
export type {
  AliasView,
  AliasViewInFull,
  ContentView,
  DifferenceView,
  RegisteredInFull,
  RegisteredModel,
  RegistrySurface,
  VersionView,
  VersionViewInFull,
} from './registry.ts';
export type { ReleasesSurface } from './releases.ts';
export type { EvidencePoint, ReleaseOutcome, ReleaseView } from './releases-schema.ts';
export type { RetirementPlanView, RetirementsSurface, RetirementView } from './retirements.ts';
export type { Status } from './status-schema.ts';
export type Config = z.infer<typeof schemas.configSchema>;
/** What a change did; the snapshot is known once it is published. */
export type ConfigChanged = Omit<z.infer<typeof schemas.configChangedSchema>, 'snapshot'>;
export type Key = z.infer<typeof schemas.keySchema>;
export type NewKey = z.infer<typeof schemas.newKeySchema>;
export type Session = z.infer<typeof schemas.sessionSchema>;
export type SessionInFull = z.infer<typeof schemas.sessionInFullSchema>;
export type Why = z.infer<typeof schemas.whySchema>;

/** An answer that is an error; everything else that is thrown is answered 500 and logged. */
export class ApiFault extends Error {
  readonly status: 400 | 401 | 403 | 404 | 409 | 413 | 415 | 500 | 503;
  readonly code: string;
  readonly faults: string[] | undefined;

  constructor(status: ApiFault['status'], code: string, message: string, faults?: string[]) {
    super(message);
    this.status = status;
    this.code = code;
    this.faults = faults;
  }
}

/** The largest body of a request, in bytes: a change of the configuration, a manifest, a golden set, a piece of content. */
export const REQUEST_BYTES_MAX = 4 * 1024 * 1024;

/** What was asked cannot be read: every fault with its place, in one line. */
export function unreadable(error: z.ZodError): ApiFault {
  const faults = faultsIn(error);
  return new ApiFault(400, 'invalid_request', faults.join('; '), faults);
}

/** What stands behind the management API: control. Each may throw an ApiFault. */
export interface Surface
  extends ReleasesSurface,
    RetirementsSurface,
    ParitySurface,
    DriftSurface,
    RegistrySurface,
    DecisionsSurface {
  status(): Promise<Status>;
  /** In Prometheus' exposition format. */
  metrics(): Promise<string>;
  routes(): z.infer<typeof schemas.routeSchema>[];
  backends(): Promise<z.infer<typeof schemas.backendSchema>[]>;
  tenants(): Promise<z.infer<typeof schemas.tenantSchema>[]>;
  models(): z.infer<typeof schemas.modelSchema>[];
  config(): Config;
  /** A part of a configuration, YAML or JSON: checked whole and put whole; a fault refuses all of it. `actor` is who asks, such as `operator` or `token:ann`. */
  changeConfig(body: string, actor: string): Promise<ConfigChanged & { snapshot: number }>;
  keys(): Promise<Key[]>;
  createKey(request: { tenant: string; name: string }, actor: string): Promise<NewKey>;
  revokeKey(id: string, actor: string): Promise<Key>;
  /** Last continued first; undefined where `after` is none of them. */
  sessions(asked: {
    limit: number;
    after?: string | undefined;
    tenant?: string | undefined;
  }): Promise<{ data: Session[]; next: string | null } | undefined>;
  session(id: string): Promise<SessionInFull | undefined>;
  /** False where there is none. */
  removeSession(id: string, actor: string): Promise<boolean>;
  /** Oldest first; they end unless they are followed. */
  events(asked: EventsAsked): Promise<AsyncIterable<LedgerEvent>>;
  /** Undefined where nothing is known of the id. */
  why(id: string): Promise<Why | undefined>;
  request(id: string): Promise<{ id: string } | undefined>;
}
