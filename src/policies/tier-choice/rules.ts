import type { Priority } from '../../kernel/priorities.ts';

/** What a rule gives instead of the name of a tier. */
export const ASKED = 'asked';
const CHEAPEST = 'cheapest';

/** One rule: a tier, and when it is taken. Every condition that it names has to hold. */
export interface TierRule {
  /** A tier's name; `asked` for the one that is asked for, `cheapest` for the cheapest that fits. */
  tier: string;
  when: {
    priority?: readonly Priority[] | undefined;
    promptTokensMin?: number | undefined;
    promptTokensMax?: number | undefined;
    /** Tiers and the load from which on the rule holds. */
    load?: Readonly<Record<string, number>> | undefined;
  };
  /** How long its turn may be away in a tier that is full before another is taken, milliseconds. */
  waitMax: number;
}

/** A tier of the route as it is now. */
export interface TierView {
  tier: string;
  /** An endpoint of it can be used. */
  usable: boolean;
  /** It has a free place for this request. */
  room: boolean;
  /** Where it has none: how long one is expected to be waited for, milliseconds; undefined where no rule asks. */
  waitMs: number | undefined;
  /** What is in flight and waits, over its places. */
  load: number;
  /** What the request is reckoned to cost there; undefined where no price is known. */
  price: number | undefined;
  /** Its window and its usual times have room for the request, as far as they are known. */
  fits: boolean;
}

/** What the rules are put to. */
export interface TierQuestion {
  priority: Priority;
  /** Reckoned from the bytes of the request. */
  promptTokens: number;
  /** The tier that the request, or its tenant, asks for. */
  asked: string | undefined;
  rules: readonly TierRule[];
  /** For each rule, whether what it says of load holds. */
  loaded: readonly boolean[];
  /** In the order of the route's targets. */
  tiers: readonly TierView[];
}

/** A tier that a rule gives, and the rule's place; undefined where no rule gives it. */
export interface Preference {
  tier: string;
  rule: number | undefined;
}

/** A session may go so much beyond the lengths of its tier's rule before it leaves it. */
const SLACK = 0.25;

/** Tiers in the order in which they are tried: as rules give them, then the others as the targets stand. */
export function preferences(question: TierQuestion): Preference[] {
  const found: Preference[] = [];
  const add = (tier: string, rule: number | undefined) => {
    if (!found.some((each) => each.tier === tier)) found.push({ tier, rule });
  };
  for (const [at, rule] of question.rules.entries()) {
    if (!holds(question, at, 0)) continue;
    for (const tier of given(question, rule)) add(tier, at);
  }
  for (const { tier } of question.tiers) add(tier, undefined);
  return found;
}

/** The first rule by which a session may stay in the tier. */
export function allows(question: TierQuestion, tier: string): number | undefined {
  const at = question.rules.findIndex((rule, at) => {
    if (!holds(question, at, SLACK)) return false;
    if (rule.tier === CHEAPEST) return question.tiers.some((each) => each.tier === tier && each.fits);
    return given(question, rule).includes(tier);
  });
  return at < 0 ? undefined : at;
}

function holds({ rules, loaded, priority, promptTokens }: TierQuestion, at: number, slack: number): boolean {
  const { when } = rules[at]!;
  if (when.priority && !when.priority.includes(priority)) return false;
  if (when.promptTokensMin !== undefined && promptTokens < when.promptTokensMin * (1 - slack)) return false;
  if (when.promptTokensMax !== undefined && promptTokens > when.promptTokensMax * (1 + slack)) return false;
  return loaded[at]!;
}

/** The tiers that the rule gives, of those that there are. */
function given({ tiers, asked }: TierQuestion, rule: TierRule): string[] {
  if (rule.tier === CHEAPEST)
    return tiers
      .filter(({ fits }) => fits)
      .toSorted((a, b) => (a.price ?? Number.POSITIVE_INFINITY) - (b.price ?? Number.POSITIVE_INFINITY) || 0)
      .map(({ tier }) => tier);
  const name = rule.tier === ASKED ? asked : rule.tier;
  return tiers.some(({ tier }) => tier === name) ? [name!] : [];
}
