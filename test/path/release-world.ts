import type { Evidence, LedgerEvent } from '../../src/events/contracts.ts';
import type { ReleaseArms } from '../../src/links/messages.ts';
import { armOf } from '../../src/policies/canary-arm/index.ts';
import { chatAnswer, VirtualGateway } from './virtual-gateway.ts';

/** A route under release in virtual time: two backends of stable, a canary, and one that is the canary's baseline. */

export const [OLD, NEXT] = ['http://old:1', 'http://next:1'];
const [OTHER, BASE] = ['http://other:1', 'http://base:1'];
export const RELEASE = 'rel_1';

export interface World {
  /** What the route has beside its targets. */
  route?: object;
  backends?: Record<string, object>;
  /** Weights of `old` and `other` within stable. */
  stable?: [number, number];
  affinity?: string;
}

export function config(share: number, world: World = {}): object {
  const [old, other] = world.stable ?? [1, 0];
  const rest = (1 - share) / (old + other);
  const backend = (origin: string, model: string) => ({
    engine: 'openai',
    model,
    endpoints: [`${origin}/v1`],
  });
  return {
    backends: {
      old: backend(OLD!, 'm1'),
      other: backend(OTHER!, 'm1'),
      next: backend(NEXT!, 'm2'),
      base: backend(BASE!, 'm1'),
      ...world.backends,
    },
    routes: {
      chat: {
        targets: [
          { backend: 'old', weight: old * rest },
          { backend: 'other', weight: other * rest },
          { backend: 'next', weight: share },
        ],
        affinity: world.affinity ?? 'none',
        ...world.route,
      },
    },
  };
}

/** A gateway whose route is under release; every engine answers at once. */
export class ReleaseGateway extends VirtualGateway {
  readonly #world: World;

  constructor(share: number, world: World = {}, arms: Partial<ReleaseArms> = {}, seed = 1) {
    super(config(0, world), seed);
    this.#world = world;
    for (const origin of [OLD!, OTHER!, NEXT!, BASE!]) this.engines.set(origin, chatAnswer('x', 1));
    this.step(share, arms);
  }

  /** The release goes on to this share. */
  step(share: number, arms: Partial<ReleaseArms> = {}): void {
    this.load(config(share, this.#world), {}, { chat: { id: RELEASE, canary: 'next', share, ...arms } });
  }

  /** The release is over, and the targets are as they were before it. */
  rollBack(share = 0): void {
    this.load(config(share, this.#world));
  }

  /** Asks once, and gives back who answered; undefined where nobody of the backends did. */
  async askedAs(session: string | undefined, more: object = {}): Promise<string | undefined> {
    const caller = this.chat(more, session === undefined ? {} : { 'x-armature-session': session });
    await this.time.advance(50);
    return caller.answerHeader('x-armature-backend');
  }

  moves(): LedgerEvent[] {
    return this.events('session-moved');
  }
}

export function armIn(share: number, session: string): string {
  return armOf(RELEASE, `open/${session}`, share);
}

/** The first session that is in this arm at this share. */
export function sessionOf(arm: string, share: number): string {
  for (let i = 0; i < 10_000; i++) if (armIn(share, `s${i}`) === arm) return `s${i}`;
  throw new Error(`no session is ${arm} at a share of ${share}`);
}

/** What several batches say together, as far as it adds up. */
export function total(batches: readonly Evidence[], arm: keyof Evidence['arms']) {
  return batches.reduce(
    (sum, { arms }) => ({
      requests: sum.requests + arms[arm].requests,
      failed: sum.failed + arms[arm].failed,
    }),
    { requests: 0, failed: 0 },
  );
}
