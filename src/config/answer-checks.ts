import type { Findings } from './checks.ts';
import type { Settings } from './schema/index.ts';

/** Routes that keep answers need room for them. */
export function checkAnswers({ gateway, routes }: Settings, findings: Findings): void {
  const max = gateway.cacheBytesMax;
  for (const [name, { cache, ladder }] of Object.entries(routes)) {
    const rung = ladder.findIndex((each) => 'cached' in each);
    if (!cache && rung < 0) continue;
    const path = cache ? ['routes', name, 'cache'] : ['routes', name, 'ladder', rung];
    if (max === 0) {
      const message = 'no answer is ever kept: gateway.cacheBytesMax is 0';
      findings.notices.push({ code: 'looks-wrong', path, message });
    } else if (cache && cache.answerBytesMax > max) {
      const message = `an answer of ${cache.answerBytesMax} bytes is never kept: gateway.cacheBytesMax is ${max}`;
      findings.notices.push({ code: 'looks-wrong', path: [...path, 'answerBytesMax'], message });
    }
  }
}
