/** How far something that takes a while has come, and at last what came of it. */
export type Step<Done> =
  | { type: 'progress'; what: string; bytes: number; total: number }
  | ({ type: 'done' } & Done);

export type Report = (what: string, bytes: number, total: number) => void;

/**
 * Runs `work` and gives what it reports, the newest where the reader is slower, and then its end. A reader that leaves
 * stops it.
 */
export async function* stepsOf<Done extends object>(
  work: (report: Report, signal: AbortSignal) => Promise<Done>,
): AsyncGenerator<Step<Done>> {
  const stop = new AbortController();
  let newest: Step<Done> | undefined;
  let wake = () => {};
  const report: Report = (what, bytes, total) => {
    newest = { type: 'progress', what, bytes, total };
    wake();
  };
  let over = false;
  const end = work(report, stop.signal).finally(() => {
    over = true;
    wake();
  });
  // Whoever reads is told by the `await` below.
  end.catch(() => undefined);
  try {
    while (!over) {
      const step = newest;
      newest = undefined;
      if (step) yield step;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (over || newest) resolve();
        });
    }
    yield { type: 'done', ...(await end) };
  } finally {
    stop.abort();
  }
}
