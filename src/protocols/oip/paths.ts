/** What a path of the Open Inference Protocol asks for. */
export type OipCall = OipServerCall | OipModelCall;
export interface OipServerCall {
  call: 'live' | 'ready' | 'server';
}
export interface OipModelCall {
  call: 'model-ready' | 'model' | 'infer';
  model: string;
  version: string | undefined;
}

/** Reads a path below `/v2`, without its query; undefined for what the protocol does not have. */
export function readOipPath(path: string): OipCall | undefined {
  if (path === '/v2' || path === '/v2/') return { call: 'server' };
  if (path === '/v2/health/live') return { call: 'live' };
  if (path === '/v2/health/ready') return { call: 'ready' };
  // A model's name may hold slashes, so its end is found from the right.
  const match = /^\/v2\/models\/(.+?)(?:\/versions\/([^/]+))?(?:\/(infer|ready))?\/?$/.exec(path);
  if (!match) return undefined;
  const model = decode(match[1]!);
  const version = match[2] === undefined ? undefined : decode(match[2]);
  if (model === undefined || (match[2] !== undefined && !isVersion(version))) return undefined;
  const last = match[3];
  return { call: last === 'infer' ? 'infer' : last === 'ready' ? 'model-ready' : 'model', model, version };
}

/** The same call as the engine knows it. */
export function oipPath(
  call: 'model-ready' | 'model' | 'infer',
  model: string,
  version: string | undefined,
): string {
  const pin = version === undefined ? '' : `/versions/${encodeURIComponent(version)}`;
  const last = call === 'infer' ? '/infer' : call === 'model-ready' ? '/ready' : '';
  return `/v2/models/${encodeURIComponent(model)}${pin}${last}`;
}

/** One segment that an engine's server cannot take for a way to another path. */
function isVersion(version: string | undefined): boolean {
  return version !== undefined && /^[\w:@+~-][\w.:@+~-]{0,255}$/.test(version);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined; // a broken percent escape
  }
}
