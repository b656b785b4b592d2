import type { Decision, Policy } from '../contracts.ts';

/** An endpoint as the decision sees it. */
export interface PlacedView {
  /** Its place among the endpoints that may be used. */
  at: number;
  key: string;
  /** Tokens in flight there, with what others have there where all engines tell. */
  load: number;
}

export interface PrefixInput {
  /** Blocks that the prompt has, one at least; and how many of them, from its beginning, are known at an endpoint. */
  blocks: number;
  matched: number;
  /** The matched beginning was all of a prompt, which this one goes on with: a conversation has grown. */
  grown: boolean;
  /** Tokens of a usual request. */
  usual: number;
  /** Endpoints that have the matched beginning, four at most, the one that it belongs to first. */
  holders: readonly PlacedView[];
  /** Where a beginning as this one belongs that nobody has yet. */
  home: PlacedView;
  /** The least loaded of all. */
  least: PlacedView;
}

/** Share of the prompt that must be known for it to go where that is, where other prompts begin so as well. */
const MATCHED_MIN = 0.5;
/** An endpoint that has the beginning is left when its load is above this many times the least, and so many requests. */
const GAP_FACTOR = 1.5;
const GAP_REQUESTS = 4;
/** Requests by which one that has the beginning may be busier than another that has it, or than any where nobody has. */
const SLACK_REQUESTS = 1;

/** Keeps prompts with a long common beginning at one endpoint, until it is much busier than others: then -1. */
export const prefixAffinity: Policy<PrefixInput, number> = {
  name: 'prefix-affinity',
  version: 1,
  decide(input: PrefixInput): Decision<number> {
    const { blocks, matched, grown, holders, home, least, usual } = input;
    const slack = SLACK_REQUESTS * usual;
    if (holders.length === 0 || (!grown && matched < MATCHED_MIN * blocks)) {
      if (home.load <= least.load + slack) return because(home.at, 'prefix-placed', input, home);
      return because(-1, 'prefix-not-placed', input, home);
    }
    let lightest = holders[0]!;
    for (const holder of holders) if (holder.load < lightest.load) lightest = holder;
    const holder = holders.find(({ load }) => load <= lightest.load + slack)!;
    if (holder.load <= GAP_FACTOR * least.load + GAP_REQUESTS * usual)
      return because(holder.at, 'prefix-kept', input, holder);
    return because(-1, 'prefix-yielded', input, holder);
  },
};

function because(
  choice: number,
  code: string,
  { blocks, matched, least }: PrefixInput,
  { key, load }: PlacedView,
): Decision<number> {
  const figures = { endpoint: key, blocks, matched, load: Math.round(load), least: Math.round(least.load) };
  return { choice, reason: { code, figures } };
}
