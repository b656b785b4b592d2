import type { Random } from '../src/kernel/random.ts';
import { systemTimers } from '../src/kernel/timers.ts';
import type { LoadRequest, Outcome, Sender } from '../src/load/contracts.ts';
import { openaiRequests } from '../src/load/requests.ts';
import type { Intended } from '../src/load/schedule.ts';

/** What callers of a busy gateway do: most ask well, some leave early, some ask for nonsense. */

/** Shares of the requests, out of 100. */
const PLAIN = 40;
const STREAMED = 40;
const EMBEDDED = 10;
const UNKNOWN_ROUTE = 4;
// The rest is a body that is no JSON.

/** Out of 100 streams, so many are left by their caller at a random moment within LEAVE_MS_MAX. */
const LEAVING = 10;
const LEAVE_MS_MAX = 80;

/** Requests of all kinds for the routes `chat` and `search` of `base`. */
export function mixedRequests(base: string, random: Random): (intended: Intended) => LoadRequest {
  const make = (kind: 'chat' | 'embeddings', model: string, stream: boolean) =>
    openaiRequests({ base, model, kind, stream }, random);
  const plain = make('chat', 'chat', false);
  const streamed = make('chat', 'chat', true);
  const embedded = make('embeddings', 'search', false);
  const unknown = make('chat', 'nobody', false);
  return (intended) => {
    const draw = random.next() * 100;
    if (draw < PLAIN) return plain(intended);
    if (draw < PLAIN + STREAMED) return streamed(intended);
    if (draw < PLAIN + STREAMED + EMBEDDED) return embedded(intended);
    if (draw < PLAIN + STREAMED + EMBEDDED + UNKNOWN_ROUTE) return unknown(intended);
    return { path: `${base}/chat/completions`, body: '{"model":"chat","messages":', streams: false };
  };
}

/** Lets some streams be left early, which ends them as `left`, and takes a 4xx for the right answer to nonsense. */
export function mixedSender(sender: Sender, random: Random): Sender {
  return {
    send(request, watch) {
      const leaves = request.streams && random.next() * 100 < LEAVING;
      let timer: unknown;
      const end = (outcome: Outcome) => {
        systemTimers.clear(timer);
        const refused = outcome.status >= 400 && outcome.status < 500 && outcome.status !== 429;
        watch.onEnd(refused ? { ...outcome, failure: undefined } : outcome);
      };
      const abort = sender.send(request, { ...watch, onEnd: end });
      if (leaves) {
        timer = systemTimers.set(random.next() * LEAVE_MS_MAX, () => {
          abort();
          watch.onEnd({ status: 0, failure: 'left', degraded: undefined, outputTokens: 0 });
        });
      }
      return () => {
        systemTimers.clear(timer);
        abort();
      };
    },
    close: () => sender.close(),
  };
}
