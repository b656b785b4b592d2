import { formatDuration } from '../kernel/units.ts';
import type { Findings } from './checks.ts';
import type { Path } from './places.ts';
import type { Settings } from './schema/index.ts';

/** What a route says that can never help, though nothing of it is wrong by itself. */
export function checkUse({ routes }: Settings, findings: Findings): void {
  for (const [name, { batch, deadline, hedge, ladder }] of Object.entries(routes)) {
    const notice = (where: Path, message: string) =>
      findings.notices.push({ code: 'looks-wrong', path: ['routes', name, ...where], message });
    const fixed = ladder.findIndex((rung) => 'answer' in rung);
    let shortest = Number.POSITIVE_INFINITY;
    for (const [at, rung] of ladder.entries()) {
      if (fixed >= 0 && at > fixed)
        notice(['ladder', at], 'it stands below a fixed answer, which chat and completions never pass over');
      if (!('output' in rung)) continue;
      const { tokensMax } = rung.output;
      if (tokensMax >= shortest)
        notice(
          ['ladder', at, 'output', 'tokensMax'],
          `it shortens nothing: a rung above allows ${shortest} tokens`,
        );
      shortest = Math.min(shortest, tokensMax);
    }
    if (hedge && typeof hedge.after === 'number' && hedge.after >= deadline)
      notice(
        ['hedge', 'after'],
        `no second attempt is ever made: the deadline of ${formatDuration(deadline)} comes first`,
      );
    if (batch && batch.delay > deadline / 2)
      notice(
        ['batch', 'delay'],
        `it is never waited so long: half of the deadline of ${formatDuration(deadline)} is the most`,
      );
  }
}
