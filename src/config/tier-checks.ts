import type { Findings } from './checks.ts';
import type { RouteSettings, Settings } from './schema/index.ts';

/** What a rule may say instead of the name of a tier. */
const WORDS = ['asked', 'cheapest'];

/** Routes that choose among tiers of their targets: every name is one of theirs, and every target stands in one. */
export function checkTiers({ backends, routes, tenants }: Settings, findings: Findings): void {
  for (const [name, { tier }] of Object.entries(backends)) {
    if (tier === undefined || !WORDS.includes(tier)) continue;
    const message = `"${tier}" has a meaning of its own in the rules of routes`;
    findings.fault('contradiction', ['backends', name, 'tier'], message, {
      hint: 'take another name for the tier',
    });
  }
  for (const [name, route] of Object.entries(routes))
    if (route.tiers) checkRoute(name, route, route.tiers, backends, findings);
  const all = [...new Set(Object.values(backends).flatMap(({ tier }) => tier ?? []))];
  for (const [name, { tier }] of Object.entries(tenants ?? {})) {
    if (tier !== undefined) findings.known(tier, all, 'tier', ['tenants', name, 'tier']);
  }
}

function checkRoute(
  name: string,
  { targets }: RouteSettings,
  rules: NonNullable<RouteSettings['tiers']>,
  backends: Settings['backends'],
  findings: Findings,
): void {
  const path = ['routes', name];
  const there = new Set<string>();
  let faulty = false;
  for (const [index, { backend }] of targets.entries()) {
    const settings = backends[backend];
    if (settings?.tier !== undefined) there.add(settings.tier);
    faulty ||= settings === undefined; // it has a fault of its own, and may be meant to stand in any tier
    if (!settings || settings.tier !== undefined) continue;
    const message = `the backend "${backend}" stands in no tier, so that no rule could send anything to it`;
    const hint = `give backends.${backend} a tier, such as edge, mid or large`;
    findings.fault('contradiction', [...path, 'targets', index, 'backend'], message, { hint });
  }
  if (faulty) return;
  const known = (tier: string, where: (string | number)[]) =>
    findings.known(tier, [...there], 'tier of its targets', where);
  for (const [index, { tier, when }] of rules.entries()) {
    const here = [...path, 'tiers', index];
    if (!WORDS.includes(tier)) known(tier, [...here, 'tier']);
    for (const loaded of Object.keys(when.load ?? {})) known(loaded, [...here, 'when', 'load', loaded]);
    const { promptTokensMin, promptTokensMax } = when;
    if (promptTokensMin !== undefined && promptTokensMax !== undefined && promptTokensMin > promptTokensMax)
      findings.fault(
        'contradiction',
        [...here, 'when', 'promptTokensMin'],
        `no prompt has ${promptTokensMin} tokens at least and ${promptTokensMax} at most`,
      );
    const unpriced = targets.find(({ backend }) => backends[backend]?.price === undefined);
    if (tier === 'cheapest' && unpriced)
      findings.notices.push({
        code: 'looks-wrong',
        path: [...here, 'tier'],
        message: `"${unpriced.backend}" has no price, and counts as the dearest`,
      });
  }
  if (there.size === 1)
    findings.notices.push({
      code: 'looks-wrong',
      path: [...path, 'tiers'],
      message: `all of its targets stand in the tier "${[...there][0]}", so that there is nothing to choose`,
    });
}
