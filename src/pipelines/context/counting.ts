import type { TokenizerPool } from '../preprocessing/contracts.ts';
import { boundOfChat, boundOfText, imageTokens } from './bound.ts';
import type { Count } from './fit.ts';
import type { Profile } from './profile.ts';
import { type Message, textsOf } from './transcript.ts';

/** Messages of one candidate, as templates see them. */
export type Messages = readonly Message['value'][];
export type Rest = Readonly<Record<string, unknown>>;

/** What is reckoned for each message around its text where the template is not known, in tokens. */
const AROUND_MESSAGE = 24;

/** A prompt before its tokens are counted. */
interface Prompt {
  text: string;
  /** Counted beside the text. */
  beside: number;
  exact: boolean;
}

/** The prompt of a chat as the engine makes it, or as much of it as can be told. */
export function promptOf(profile: Profile, messages: Messages, rest: Rest): Prompt | undefined {
  const images = imageTokens(messages, profile.imageTokens);
  if (!profile.template) {
    const tools = rest.tools === undefined ? '' : JSON.stringify(rest.tools, null, 4);
    const calls = messages.map(({ tool_calls }) =>
      tool_calls == null ? '' : JSON.stringify(tool_calls, null, 4),
    );
    const text = [...messages.flatMap(textsOf), ...calls, tools].join('\n');
    return { text, beside: images + AROUND_MESSAGE * (messages.length + 4), exact: false };
  }
  try {
    const text = profile.template.render(messages, rest);
    const opens = profile.opening === undefined || text.startsWith(profile.opening);
    return { text: opens ? text : profile.opening + text, beside: images, exact: images === 0 };
  } catch {
    return undefined; // the template refuses these messages, and so may the engine
  }
}

/** Counts by bytes: at once, never too few. */
export function boundOf(profile: Profile, messages: Messages, rest: Rest): Count {
  const images = imageTokens(messages, profile.imageTokens);
  const prompt = profile.template && promptOf(profile, messages, rest);
  const tokens = prompt ? boundOfText(prompt.text) + images : boundOfChat(messages, rest) + images;
  return { tokens, exact: false };
}

/** Counts by a tokenizer. `failed` says why it could not, and bytes counted instead. */
export function countByTokenizer(
  pool: TokenizerPool,
  profile: Profile,
  candidates: readonly Messages[],
  { rest, rank, deadlineAt }: { rest: Rest; rank: number; deadlineAt: number },
  done: (counts: Count[], failed: string | undefined) => void,
): () => void {
  const prompts = candidates.map((messages) => promptOf(profile, messages, rest));
  const bound = (at: number) => boundOf(profile, candidates[at]!, rest);
  const texts = prompts.flatMap((prompt) => (prompt ? [prompt.text] : []));
  const ask = {
    tokenizer: profile.tokenizer!,
    texts,
    specials: false,
    want: 'counts',
    rank,
    deadlineAt,
  } as const;
  return pool.tokenize(ask, (result) => {
    if ('failed' in result) {
      done(
        candidates.map((_, at) => bound(at)),
        result.message,
      );
      return;
    }
    let next = 0;
    done(
      prompts.map((prompt, at) =>
        prompt ? { tokens: result.counts[next++]! + prompt.beside, exact: prompt.exact } : bound(at),
      ),
      undefined,
    );
  });
}
