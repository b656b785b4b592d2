import { type Dispatcher, request } from 'undici';

interface Target {
  origin: string;
  /** Such as `/v1`. */
  base: string;
}

/** How long a question before the run may take, milliseconds. */
const ASK_MS = 10_000;

/** The first model that the address lists. Throws where it lists none. */
export async function firstModel(target: Target, headers: Record<string, string>): Promise<string> {
  const list = (await get(target, '/models', headers)) as { data?: { id?: unknown }[] };
  const id = list.data?.[0]?.id;
  if (typeof id !== 'string') throw new Error('it lists no model; name one with --model');
  return id;
}

/** The metadata of an OIP model. */
export async function describeModel(
  target: Target,
  model: string,
  headers: Record<string, string>,
  dispatcher?: Dispatcher,
): Promise<unknown> {
  return get(target, `/models/${encodeURIComponent(model)}`, headers, dispatcher);
}

async function get(
  { origin, base }: Target,
  path: string,
  headers: Record<string, string>,
  dispatcher?: Dispatcher,
): Promise<unknown> {
  const { statusCode, body } = await request(`${origin}${base}${path}`, {
    ...(dispatcher && { dispatcher }),
    headers,
    headersTimeout: ASK_MS,
    bodyTimeout: ASK_MS,
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`GET ${base}${path} answered ${statusCode}: ${text.slice(0, 200)}`);
  return JSON.parse(text) as unknown;
}
