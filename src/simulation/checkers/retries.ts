import type { Settings } from '../../config/schema/index.ts';
import type { RequestRecord } from '../../events/contracts.ts';

/** Retries and hedges that may be saved up, and retries that time alone earns in a second; see the policies' READMEs. */
const RESERVE = 10;
const EARNED_PER_SECOND = 1;
/**
 * Steps after which an engine is asked once more without it being a retry: down the ladder, in another tier, a fenced endpoint
 * on trial, work that was lost with its engine.
 */
const AFRESH: ReadonlySet<string> = new Set([
  'other-backend',
  'shorter-answer',
  'next-tier',
  'trial',
  'connection-lost',
]);

/**
 * Retries stay within the budget of their route. `sent` is how many requests reached engines: beyond those that came there
 * are only retries and hedges within their budgets, one more for each rung, trials of fenced endpoints, what is done again that
 * was lost with its engine, and shadows.
 */
export function checkRetries(
  routes: Settings['routes'],
  records: Iterable<RequestRecord>,
  sent: number,
  shadows: boolean,
  spanMs: number,
): string[] {
  const wrong: string[] = [];
  const books = new Map(Object.keys(routes).map((route) => [route, { came: 0, retries: 0, hedges: 0 }]));
  let came = 0;
  let more = 0;
  for (const { route, steps } of records) {
    const book = books.get(route);
    if (!book) continue;
    book.came++;
    came++;
    // Who shares what went upstream for several has its steps too: they are counted once, where they are known to be.
    const shares = steps.some(({ code }) => code === 'single-flight' || code === 'batched');
    for (const { code } of steps) {
      if (code === 'retry-granted') book.retries += shares ? 0 : 1;
      else if (code === 'hedge-granted') book.hedges += shares ? 0 : 1;
      else if (code === 'hedge-without-place') book.hedges -= shares ? 0 : 1;
      else if (AFRESH.has(code)) more++;
    }
  }
  let allowed = came + more;
  for (const [route, { came: own, retries, hedges }] of books) {
    const { retry, hedge } = routes[route]!;
    const retriesMax =
      retry.budget > 0 ? RESERVE + own * retry.budget + (spanMs / 1000) * EARNED_PER_SECOND : 0;
    const hedgesMax = hedge ? RESERVE + own * hedge.budget : 0;
    if (retries > retriesMax + 1)
      wrong.push(`${route} made ${retries} retries of ${own} requests; its budget allows ${retriesMax}`);
    if (hedges > hedgesMax + 1)
      wrong.push(`${route} made ${hedges} hedges of ${own} requests; its budget allows ${hedgesMax}`);
    allowed += retriesMax + hedgesMax + 2;
  }
  if (!shadows && sent > allowed)
    wrong.push(
      `engines got ${sent} requests for the ${came} that came; at most ${Math.ceil(allowed)} were allowed`,
    );
  return wrong;
}
