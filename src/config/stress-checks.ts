import type { Findings } from './checks.ts';
import type { Path } from './places.ts';
import type { StressSettings } from './schema/index.ts';

/** Twice what a verdict needs at least, so that chance does not decide whether there is one. */
const ANSWERS_WANTED = 40;

/** A load has to be of one kind, and long enough for a verdict. */
export function checkStress(stress: StressSettings, path: Path, findings: Findings): void {
  const { rate, concurrency, duration, tokensIn, tokensOut, tokensInFlightMax } = stress;
  if ((rate === undefined) === (concurrency === undefined)) {
    const message =
      rate === undefined
        ? 'it is not said how much load there is to be'
        : 'a rate is an open loop and a concurrency a closed one: they contradict each other';
    findings.fault('contradiction', [...path, rate === undefined ? 'duration' : 'concurrency'], message, {
      hint: 'give one of rate, such as 20/s, and concurrency, such as 16',
    });
  }
  if (rate && (rate.amount / rate.perSeconds) * (duration / 1000) < ANSWERS_WANTED) {
    const message = `a rate so low brings fewer than ${ANSWERS_WANTED} answers in that time, which no verdict follows from`;
    findings.fault('contradiction', [...path, 'duration'], message, { hint: 'make it longer' });
  }
  if (tokensInFlightMax !== undefined && tokensInFlightMax < tokensIn + tokensOut) {
    const message = `not one request fits: it has ${tokensIn} + ${tokensOut} tokens`;
    findings.fault('contradiction', [...path, 'tokensInFlightMax'], message);
  }
}
