import type { Random } from '../kernel/random.ts';
import type { LoadRequest } from './contracts.ts';
import type { Intended } from './schedule.ts';

type Kind = 'chat' | 'embeddings';

export interface RequestSettings {
  /** Path before the API's own, such as `/v1`. */
  base: string;
  model: string;
  kind: Kind;
  stream: boolean;
  /** What the engine knows the longest answer by. Default: `max_tokens`. */
  cap?: string;
}

/** Words of three letters: with a space each is about one token to most tokenizers, and four bytes to those who count bytes. */
const WORDS = (
  'the and for you not are but was all can had her one our out day get has him his how man new now old see two way who ' +
  'boy did its let put say she too use dog sun red ten big car cup eat far fly fun hot ice job key lay map net oak pen'
).split(' ');
/** Words that prompts are cut from. */
const POOL_WORDS = 65_536;
const BYTES_PER_WORD = 4;

/**
 * Gives prompts of a length in tokens. Each begins at a place of its own in a long text of random words, so that a cache
 * of answers or of prefixes finds nothing.
 */
export function promptMaker(random: Random): (tokens: number) => string {
  let pool = '';
  for (let i = 0; i < POOL_WORDS; i++) pool += `${WORDS[Math.floor(random.next() * WORDS.length)]} `;
  return (tokens) => {
    let from = Math.floor(random.next() * POOL_WORDS);
    let text = '';
    for (let left = tokens; left > 0; ) {
      const words = Math.min(left, POOL_WORDS - from);
      text += pool.slice(from * BYTES_PER_WORD, (from + words) * BYTES_PER_WORD);
      left -= words;
      from = 0;
    }
    return text.trimEnd();
  };
}

/** Makes OpenAI-style requests. An answer's length is asked for; a real model may say less. */
export function openaiRequests(
  settings: RequestSettings,
  random: Random,
): (intended: Intended) => LoadRequest {
  const { base, model, kind, stream, cap = 'max_tokens' } = settings;
  const prompt = promptMaker(random);
  if (kind === 'embeddings') {
    return ({ promptTokens }) => ({
      path: `${base}/embeddings`,
      body: JSON.stringify({ model, input: prompt(promptTokens) }),
      streams: false,
    });
  }
  return ({ promptTokens, outputTokens }) => ({
    path: `${base}/chat/completions`,
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: prompt(promptTokens) }],
      [cap]: outputTokens,
      ...(stream && { stream: true, stream_options: { include_usage: true } }),
    }),
    streams: stream,
  });
}
