import { SessionsGateway } from './sessions-world.ts';
import { chatAnswer, type VirtualCaller } from './virtual-gateway.ts';

export const ORIGINS = { edge: 'http://edge:1', mid: 'http://mid:1', large: 'http://large:1' };

const backend = (tier: keyof typeof ORIGINS, more: object = {}) => ({
  engine: 'openai',
  model: `${tier}-model`,
  endpoints: [`${ORIGINS[tier]}/v1`],
  tier,
  limits: { concurrency: 4, adaptive: 'off' },
  ...more,
});

/** A route of three tiers, each of one endpoint with four places, and its rules. */
export function tiersConfig(tiers: object[], route: object = {}, more: object = {}) {
  return {
    backends: {
      small: backend('edge', { price: { in: 1, out: 1 } }),
      middle: backend('mid', { price: { in: 2, out: 2 } }),
      big: backend('large', { price: { in: 9, out: 9 } }),
    },
    routes: {
      chat: {
        targets: [{ backend: 'big' }, { backend: 'middle' }, { backend: 'small' }],
        deadline: '5s',
        tiers,
        ...route,
      },
    },
    ...more,
  };
}

export class TiersGateway extends SessionsGateway {
  constructor(tiers: object[], route: object = {}, more: object = {}) {
    super(tiersConfig(tiers, route, more));
    for (const origin of Object.values(ORIGINS)) this.engines.set(origin, chatAnswer('Hello', 100));
  }

  /** The backend that answers, once it has. */
  async answers(body: object = {}, headers: Record<string, string> = {}): Promise<string | undefined> {
    const caller = this.chat(body, headers);
    await this.time.advance(200);
    return backendOf(caller);
  }

  /** Fills places of a tier with requests that ask for it and take as long as this. */
  fill(tier: keyof typeof ORIGINS, count: number, ms = 100_000): VirtualCaller[] {
    const engine = this.engines.get(ORIGINS[tier])!;
    this.engines.set(ORIGINS[tier], chatAnswer('Hello', ms));
    const callers = Array.from({ length: count }, () => this.chat({}, { 'x-armature-tier': tier }));
    this.engines.set(ORIGINS[tier], engine);
    return callers;
  }

  /** The step by which its tier was chosen last. */
  chosen(at = -1) {
    return this.records.at(at)!.steps.findLast(({ policy }) => policy?.startsWith('tier-choice@'));
  }
}

export function backendOf(caller: VirtualCaller): string | undefined {
  return caller.status === 200 ? caller.answerHeader('x-armature-backend') : undefined;
}

/** A chat whose prompt is reckoned at about so many tokens. */
export const long = (tokens: number) => ({ messages: [{ role: 'user', content: 'word'.repeat(tokens) }] });
