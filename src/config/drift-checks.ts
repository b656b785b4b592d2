import { type Findings, protocolsOf } from './checks.ts';
import type { Settings } from './schema/index.ts';

/** What only one of the protocols has. */
const OF_TENSORS = /^(?:input|output|inputShape):|^class$/;
const OF_WORDS = new Set([
  'promptTokens',
  'answerTokens',
  'promptLanguage',
  'answerLanguage',
  'finishReason',
  'embedding',
]);

/** What is watched of a route has to come with what its targets answer. */
export function checkDrift({ routes, backends }: Settings, findings: Findings): void {
  for (const [name, { drift, targets }] of Object.entries(routes)) {
    if (!drift) continue;
    const path = ['routes', name, 'drift'];
    const features = drift.features.map((each) => (typeof each === 'string' ? each : each.name));
    const spoken = targets.flatMap(({ backend }) => protocolsOf(backends[backend]));
    for (const [at, feature] of features.entries()) {
      const where = [...path, 'features', at];
      if (features.indexOf(feature) < at) findings.fault('contradiction', where, `${feature} is named twice`);
      else if (feature === 'class' && drift.score === undefined)
        findings.fault('contradiction', where, 'class is read out of an output tensor, and score names none');
      else if (spoken.length === 0)
        continue; // a fault of its own
      else if (
        OF_TENSORS.test(feature)
          ? !spoken.includes('oip')
          : OF_WORDS.has(feature) && !spoken.includes('openai')
      )
        findings.notices.push({
          code: 'looks-wrong',
          path: where,
          message: `no target of the route answers with ${feature}: it speaks another protocol`,
        });
    }
    if (drift.freshRows >= drift.targetRunLength)
      findings.notices.push({
        code: 'looks-wrong',
        path: [...path, 'freshRows'],
        message: `in so many rows a change is found again by chance alone: targetRunLength is ${drift.targetRunLength}`,
      });
  }
}
