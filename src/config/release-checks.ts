import { formatDuration } from '../kernel/units.ts';
import { type Findings, protocolsOf } from './checks.ts';
import { checkCompare } from './compare-checks.ts';
import type { Path } from './places.ts';
import type { ReleaseSettings, Settings } from './schema/index.ts';
import { checkStress } from './stress-checks.ts';

/** What a route's settings for releases say about one another, and about the backends. */
export function checkReleases({ routes, backends }: Settings, findings: Findings): void {
  for (const [name, { release, targets }] of Object.entries(routes)) {
    if (!release) continue;
    const path = ['routes', name, 'release'];
    checkRelease(release, path, findings);
    const speaks = protocolsOf(backends[release.baseline ?? '']);
    const spoken = targets.flatMap(({ backend }) => protocolsOf(backends[backend]));
    if (speaks.length > 0 && spoken.length > 0 && !speaks.some((protocol) => spoken.includes(protocol))) {
      const message = `the baseline "${release.baseline}" speaks another protocol than the targets`;
      findings.fault('contradiction', [...path, 'baseline'], message);
    }
  }
}

/** What cannot hold together in the settings of a release, whoever gives them: a file, or the start of one. */
export function checkRelease(release: ReleaseSettings, path: Path, findings: Findings): void {
  for (const { key, message, hint } of contradictionsOf(release))
    findings.fault('contradiction', [...path, ...key], message, hint === undefined ? {} : { hint });
  if (release.compare) checkCompare(release.compare, [...path, 'compare'], findings);
  if (release.stress) checkStress(release.stress, [...path, 'stress'], findings);
}

interface Contradiction {
  /** Below the settings of a release. */
  key: string[];
  message: string;
  hint?: string;
}

function contradictionsOf(release: ReleaseSettings): Contradiction[] {
  const { plan, step, deadline, phases, metrics, shadow, compare } = release;
  const found: Contradiction[] = [];
  if (plan !== 'auto') {
    if (plan.some((percent, index) => index > 0 && percent <= plan[index - 1]!))
      found.push({
        key: ['plan'],
        message: `each step has to be larger than the one before: ${plan.join(', ')}`,
      });
    if (plan.at(-1) !== 100) {
      const message = `the last step has to be 100, and is ${plan.at(-1)}`;
      found.push({ key: ['plan'], message, hint: `write [${[...plan, 100].join(', ')}]` });
    }
    if (plan[0] === 100) {
      const message = 'there has to be a step below 100, for evidence to come from';
      found.push({ key: ['plan'], message, hint: 'write such as [5, 50, 100]' });
    }
  }
  // With `auto` it may be certified at its first step.
  const steps = plan === 'auto' ? 1 : plan.filter((percent) => percent < 100).length;
  const allSteps = step.timeMin * steps;
  for (const { key, ms } of [
    { key: ['deadline'], ms: deadline },
    { key: ['phases', 'canary'], ms: phases.canary ?? Number.POSITIVE_INFINITY },
  ]) {
    if (allSteps < ms) continue;
    const lasts = `the steps of its plan, which last ${formatDuration(allSteps)} at least`;
    found.push({ key, message: `${lasts}, do not fit into a deadline of ${formatDuration(ms)}` });
  }
  if (metrics.includes('quality') && shadow === 0) {
    const message = 'quality is told by answers to copies, and shadow is 0';
    found.push({ key: ['metrics'], message, hint: 'set shadow, such as 20' });
  }
  if (compare && compare.margin > MARGIN_MAX) {
    const message = `a margin of ${compare.margin} lets everything through`;
    found.push({ key: ['compare', 'margin'], message, hint: `at most ${MARGIN_MAX}` });
  }
  return found;
}

/** How much worse answers may be on average, at most. */
const MARGIN_MAX = 0.9;
