import { dialectOf } from '../../backends/register.ts';
import type { Timers } from '../../kernel/timers.ts';
import { canonical } from '../../releases/parity/fingerprint.ts';
import { clientOf, getOf } from '../http-get.ts';
import { headersTo, type Place, urlOf } from './asker.ts';

const WITHIN_MS = 5000;
const BYTES_MAX = 1024 * 1024;
/** Members that change although nothing of the engine has. */
const PASSING = new Set(['created', 'permission', 'owned_by', 'modified_at', 'default_generation_settings']);
/** Of metrics that tell settings as labels, those that are found anew at each start. */
const PASSING_LABELS = /^(num_gpu_blocks|num_cpu_blocks|pid|engine)$/;

/**
 * What an endpoint tells of itself without an inference: the engine and its version, the model as it is loaded, settings of its
 * cache and batches. Undefined where any of it cannot be had now, which tells nothing.
 */
export async function toldBy(place: Place, timers: Timers): Promise<string | undefined> {
  const { settings, endpoint } = place;
  const told: Record<string, unknown> = {};
  const isOip = dialectOf(settings.engine).protocol === 'oip';
  const model = encodeURIComponent(settings.model);
  const paths = isOip
    ? [urlOf(place, '/v2'), urlOf(place, `/v2/models/${model}`), urlOf(place, `/v2/models/${model}/config`)]
    : ['/version', '/props', '/info', '/api/version'].map((path) => new URL(path, endpoint).href);
  const get = (url: string) => read(place, url, timers);
  try {
    for (const url of paths) {
      const { server, text } = await get(url);
      if (server !== undefined) told['server'] = server;
      const json = parsed(text);
      if (json !== undefined) told[new URL(url).pathname] = lasting(json);
    }
    if (!isOip) {
      told['model'] = modelIn(parsed((await get(`${endpoint}/models`)).text), settings.model);
      const { gaugesPath } = dialectOf(settings.engine);
      if (gaugesPath !== undefined)
        Object.assign(told, settingsIn((await get(new URL(gaugesPath, endpoint).href)).text ?? ''));
    }
  } catch {
    return undefined; // a part of what it tells would be another engine
  }
  return canonical(told);
}

interface Page {
  /** Absent where there is no such page, or one too long to be a few settings. */
  text: string | undefined;
  server: string | undefined;
}

/** Rejects where nothing can be told now. */
async function read(place: Place, url: string, timers: Timers): Promise<Page> {
  const { settings } = place;
  const tls = 'tls' in settings ? (settings.tls as Parameters<typeof clientOf>[1]) : undefined;
  const client = clientOf(url, tls, WITHIN_MS);
  const limit = timers.set(WITHIN_MS, () => void client.destroy());
  try {
    const { statusCode, headers, body } = await client.request(getOf(url, headersTo(settings)));
    if (statusCode === 429 || statusCode >= 500) throw new Error(`${url} answered ${statusCode}`);
    const server = headers['server'];
    let text: string | undefined = '';
    for await (const piece of body.setEncoding('utf8')) {
      text += piece;
      if (text.length > BYTES_MAX) break;
    }
    if (statusCode !== 200 || text.length > BYTES_MAX) text = undefined;
    return { text, server: typeof server === 'string' ? server : undefined };
  } finally {
    timers.clear(limit);
    void client.destroy();
  }
}

function parsed(text: string | undefined): unknown {
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined; // a page for people
  }
}

function lasting(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !PASSING.has(name)));
}

function modelIn(list: unknown, model: string): unknown {
  const { data } = (list ?? {}) as { data?: { id?: string }[] };
  const found = Array.isArray(data) ? data.find(({ id }) => id === model) : undefined;
  return found && lasting(found);
}

/** Settings that are told as the labels of a metric, such as `vllm:cache_config_info`. */
function settingsIn(metrics: string): Record<string, Record<string, string>> {
  const found: Record<string, Record<string, string>> = {};
  for (const [, name, labels] of metrics.matchAll(/^([\w:]*cache_config_info)\{([^}]*)\}/gm)) {
    const pairs = [...labels!.matchAll(/(\w+)="([^"]*)"/g)].filter(
      ([, label]) => !PASSING_LABELS.test(label!),
    );
    found[name!] = Object.fromEntries(pairs.map(([, label, value]) => [label!, value!]));
  }
  return found;
}
