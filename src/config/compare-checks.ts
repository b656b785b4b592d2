import type { Findings } from './checks.ts';
import type { Path } from './places.ts';
import type { CompareSettings, Settings } from './schema/index.ts';

/** Copies that would never be sent, and comparisons that could not be made. */
export function checkCopies({ routes, backends }: Settings, findings: Findings): void {
  for (const [name, { shadow, effects }] of Object.entries(routes)) {
    for (const [index, { backend, compare }] of shadow.entries()) {
      const path = ['routes', name, 'shadow', index];
      if (compare) checkCompare(compare, [...path, 'compare'], findings);
      if (!effects && !backends[backend]?.effects) continue;
      const acts = effects ? 'what the route answers' : `what "${backend}" answers`;
      const message = `no copy is ever sent: ${acts} has effects`;
      findings.notices.push({ code: 'looks-wrong', path: [...path, 'backend'], message });
    }
  }
}

/** Whether a comparison names the route that it asks, and only where it asks one. */
export function checkCompare({ by, route }: CompareSettings, path: Path, findings: Findings): void {
  const asks = by === 'embedding' || by === 'judge';
  if (asks && route === undefined) {
    findings.fault(
      'contradiction',
      [...path, 'by'],
      `a comparison by ${by} asks a route, and none is named`,
      {
        expected: 'route: the name of a route',
        hint:
          by === 'judge' ? 'name a route to a model that can judge' : 'name a route to an embedding model',
      },
    );
  } else if (!asks && route !== undefined) {
    findings.fault('contradiction', [...path, 'route'], `a comparison by ${by} asks no route`, {
      hint: 'leave it away, or compare by embedding or judge',
    });
  }
}
