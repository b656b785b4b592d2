import { type Findings, protocolsOf } from './checks.ts';
import type { Settings } from './schema/index.ts';

/** The reference of a route's parity is a backend that speaks what its targets speak. */
export function checkParity({ routes, backends }: Settings, findings: Findings): void {
  for (const [name, { parity, targets }] of Object.entries(routes)) {
    if (parity?.reference === undefined) continue;
    const speaks = protocolsOf(backends[parity.reference]);
    const spoken = targets.flatMap(({ backend }) => protocolsOf(backends[backend]));
    if (speaks.length === 0 || spoken.length === 0) continue; // a fault of its own
    if (speaks.some((protocol) => spoken.includes(protocol))) continue;
    const message = `the reference "${parity.reference}" speaks another protocol than the targets`;
    findings.fault('contradiction', ['routes', name, 'parity', 'reference'], message);
  }
}
