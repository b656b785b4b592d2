import { type Findings, protocolsOf } from './checks.ts';
import type { RouteSettings, Settings } from './schema/index.ts';

/** Routes whose texts become tokens in the gateway: what their targets take, and where the tokenizer comes from. */
export function checkPrepare(settings: Settings, findings: Findings): void {
  for (const [name, route] of Object.entries(settings.routes)) {
    if (route.prepare) checkRoute(name, route, route.prepare, settings, findings);
    else checkPlain(name, route, settings, findings);
  }
}

function checkRoute(
  name: string,
  route: RouteSettings,
  prepare: NonNullable<RouteSettings['prepare']>,
  { backends, models }: Settings,
  findings: Findings,
): void {
  const path = ['routes', name, 'prepare'];
  const { to, tokensMax, batchTokensMax, tokenizer, delay } = prepare;
  if (tokensMax > batchTokensMax) {
    const message = `one text may have ${tokensMax} tokens, and all that go together ${batchTokensMax}`;
    const hint = 'raise batchTokensMax, or lower tokensMax';
    findings.fault('contradiction', [...path, 'batchTokensMax'], message, { hint });
  }
  if (route.batch) {
    const message = 'requests of this route go together by their tokens already';
    findings.fault('contradiction', ['routes', name, 'batch'], message, {
      at: 'key',
      hint: 'leave batch out',
    });
  }
  if (delay > route.deadline / 2) {
    const message = `no text waits longer than half of the deadline, which is ${route.deadline} ms`;
    findings.notices.push({ code: 'looks-wrong', path: [...path, 'delay'], message });
  }
  for (const [index, { backend }] of route.targets.entries()) {
    const spoken = protocolsOf(backends[backend]);
    if (spoken.length === 0 || spoken.includes(to === 'ids' ? 'openai' : 'oip')) continue;
    const takes = to === 'ids' ? 'tensors' : 'ids';
    const message = `"${backend}" takes ${takes}, and the route makes ${to} of texts`;
    findings.fault('contradiction', ['routes', name, 'targets', index, 'backend'], message, {
      hint: `prepare: { to: ${takes} }`,
    });
  }
  if (tokenizer && 'model' in tokenizer) {
    findings.known(tokenizer.model, findings.names.models, 'model', [...path, 'tokenizer', 'model']);
    const model = models[tokenizer.model];
    if (model && !model.tokenizer) noTokenizer(tokenizer.model, [...path, 'tokenizer', 'model'], findings);
  }
  if (!tokenizer && route.targets.every(({ backend }) => backends[backend])) {
    if (tokenizerOf(route, { backends, models }) === undefined) {
      const message = 'no tokenizer is known that its targets have';
      const hint = 'give prepare.tokenizer: { file } or { model }';
      findings.fault('contradiction', path, message, { at: 'key', hint });
    }
  }
}

function noTokenizer(model: string, path: (string | number)[], findings: Findings): void {
  findings.fault('contradiction', path, `the model "${model}" has no tokenizer`, {
    hint: `give models.${model}.tokenizer`,
  });
}

/** A host that takes tokens alone cannot read what a route sends as it is. */
function checkPlain(
  name: string,
  { targets }: RouteSettings,
  { backends }: Settings,
  findings: Findings,
): void {
  for (const [index, { backend }] of targets.entries()) {
    const settings = backends[backend];
    if (settings?.engine !== 'local' || !settings.host.prepared) continue;
    const path = ['routes', name, 'targets', index, 'backend'];
    const message = `the host of "${backend}" takes tokens alone, so that texts are refused there`;
    findings.notices.push({ code: 'looks-wrong', path, message });
  }
}

/** The tokenizer of a route's targets: what `prepare` says, or what is known of a target. */
export function tokenizerOf(
  { prepare, targets }: RouteSettings,
  { backends, models }: Pick<Settings, 'backends' | 'models'>,
): { file: string } | { model: string } | undefined {
  if (prepare?.tokenizer) return prepare.tokenizer;
  for (const { backend } of targets) {
    const settings = backends[backend];
    const told = settings?.context?.tokenizer;
    if (told !== undefined && told !== 'engine') return told;
    if (settings?.engine === 'local' && models[settings.model]?.tokenizer) return { model: settings.model };
  }
  return undefined;
}
