import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Exchange, Path } from '../../gateway/contracts.ts';
import { boundaryAt } from './cut.ts';
import { type Message, type Transcript, textsOf } from './transcript.ts';
import type { Unit } from './turns.ts';

/** Summaries are kept for the same turns of the same tenant; all of them together are no longer than this, in characters. */
const KEPT_CHARACTERS_MAX = 4 * 1024 * 1024;
const KEPT_MAX = 10_000;
/** What one summary is made of, in characters: the latest part of more. */
const INPUT_CHARACTERS_MAX = 24 * 1024;
/** A summary may take this share of the time that is left. */
const TIME_SHARE = 0.5;

const ASK =
  'Write down in short what was said in this conversation: facts, names, numbers, decisions and what is still open. Nothing else, and no advice.';

export interface SummaryRequest {
  path: Path;
  x: Exchange;
  /** The route that makes it. */
  route: string;
  tokensMax: number;
  yieldPlace(): void;
}

export type Summary = { text: string } | { failed: string };

/** Short forms of turns that are left out, made by another route, and kept for the turns that they are of. */
export class Summaries {
  readonly #kept = new LRUCache<string, string>({
    max: KEPT_MAX,
    maxSize: KEPT_CHARACTERS_MAX,
    sizeCalculation: (text) => text.length + 64,
  });

  /**
   * Calls back once, at once where it is kept; never once the returned function was called. Where fewer of the turns have a
   * summary already, that stands for them in what the other route reads.
   */
  of(
    request: SummaryRequest,
    transcript: Transcript,
    left: readonly Unit[],
    done: (summary: Summary) => void,
  ): () => void {
    const names = namesOf(request, transcript, left);
    let known = names.length;
    let before: string | undefined;
    while (known > 0 && before === undefined) before = this.#kept.get(names[--known]!);
    if (before !== undefined && known === names.length - 1) {
      done({ text: before });
      return () => undefined;
    }
    const rest = before === undefined ? left : left.slice(known + 1);
    const told = asText(
      rest
        .flat()
        .sort((a, b) => a - b)
        .map((at) => transcript.messages[at]!),
    );
    return ask(request, before === undefined ? told : `${before}\n\n${told}`, (summary) => {
      if ('text' in summary) this.#kept.set(names.at(-1)!, summary.text);
      done(summary);
    });
  }
}

/** What summaries of the first, the first two, ... of the units are kept by. */
function namesOf(
  { x, route, tokensMax }: SummaryRequest,
  { messages, body }: Transcript,
  left: readonly Unit[],
): string[] {
  const hash = createHash('sha256').update(JSON.stringify([x.tenant, route, tokensMax]));
  return left.map((unit) => {
    for (const at of unit) hash.update(body.subarray(messages[at]!.start, messages[at]!.end)).update('\0');
    return hash.copy().digest('base64');
  });
}

function asText(messages: readonly Message[]): string {
  const told = messages
    .map(({ role, value }) => `${role}: ${textsOf(value).join('\n')}${callsOf(value)}`)
    .join('\n\n');
  return told.slice(boundaryAt(told, Math.max(0, told.length - INPUT_CHARACTERS_MAX)));
}

function callsOf({ tool_calls: calls }: Message['value']): string {
  return Array.isArray(calls) && calls.length > 0 ? `\n${JSON.stringify(calls)}` : '';
}

function ask(
  { path, x, route, tokensMax, yieldPlace }: SummaryRequest,
  said: string,
  done: (summary: Summary) => void,
): () => void {
  const now = path.deps.clock.mono();
  const body = {
    model: route,
    messages: [
      { role: 'system', content: ASK },
      { role: 'user', content: said },
    ],
    max_tokens: tokensMax,
    temperature: 0,
  };
  let over = false;
  const end = (summary: Summary) => {
    if (over) return;
    over = true;
    done(summary);
  };
  yieldPlace(); // it may be needed for the summary itself
  const asked = path.ask(
    {
      target: '/v1/chat/completions',
      body: Buffer.from(JSON.stringify(body)),
      terms: {
        tenant: x.tenant,
        charged: 'stage',
        priority: x.priority,
        deadlineAt: now + (x.deadlineAt - now) * TIME_SHARE,
        ladder: false,
        session: undefined,
        ids: { id: x.id, requestId: x.requestId },
        traceparent: x.traceparent,
      },
    },
    {
      whole: (status, _headers, answer) =>
        end(status === 200 ? readText(answer) : { failed: `the answer was ${status}` }),
      open: () => undefined,
      piece: () => true,
      end: () => end({ failed: 'the answer was too long' }),
      broken: () => end({ failed: 'the answer broke off' }),
    },
  );
  return () => {
    over = true;
    asked.leave();
  };
}

function readText(answer: Buffer): Summary {
  try {
    const { choices } = JSON.parse(answer.toString('utf8')) as {
      choices: { message: { content: unknown } }[];
    };
    const text = choices[0]?.message.content;
    return typeof text === 'string' && text.trim() !== ''
      ? { text: text.trim() }
      : { failed: 'the answer was empty' };
  } catch {
    return { failed: 'the answer could not be read' };
  }
}
