import { Pool } from 'undici';
import { dialectOf } from '../../backends/register.ts';
import type { BackendSettings } from '../../config/schema/index.ts';
import { pause, type Timers } from '../../kernel/timers.ts';
import { callOf, type GoldenAnswer, readAnswer } from '../../releases/parity/answers.ts';
import type { GoldenPrompt } from '../../releases/parity/golden.ts';
import { tlsOf } from '../http-get.ts';
import { headersOf } from '../probing/targets.ts';

/** One endpoint of a backend, as it is asked. */
export interface Place {
  backend: string;
  settings: BackendSettings;
  endpoint: string;
}

const CONNECTIONS_MAX = 16;
/** The longest answer that is read, in bytes. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const ATTEMPTS = 3;
const PAUSE_MS = 500;
/** The engine cannot read the request: that it says so is its answer. Other statuses tell of its state or of our configuration. */
const REFUSALS = new Set([400, 413, 422]);

/**
 * Puts golden prompts to endpoints, past the gateway: its answers are seen by no caller, and count for no tenant, limit or
 * health.
 */
export class Asker {
  readonly #timers: Timers;
  readonly #pools = new Map<string, Pool>();
  /** Backends whose engine refuses to tell log-probabilities. */
  readonly #untold = new Set<string>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Rejects where no answer can be had in a few attempts, or the signal ends it. */
  async ask(place: Place, prompt: GoldenPrompt, signal: AbortSignal): Promise<GoldenAnswer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(place, prompt, signal);
      } catch (error) {
        if (attempt === ATTEMPTS || signal.aborted) throw error;
        await pause(this.#timers, PAUSE_MS * attempt);
      }
    }
  }

  /** Connections are made anew from now on, with the certificates of now; what is under way ends as it began. */
  renew(): void {
    for (const pool of this.#pools.values()) void pool.close();
    this.#pools.clear();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
    this.#pools.clear();
  }

  async #once(place: Place, prompt: GoldenPrompt, signal: AbortSignal): Promise<GoldenAnswer> {
    const logprobs = !this.#untold.has(place.backend);
    const first = await this.#post(place, prompt, logprobs, signal);
    const generates = prompt.kind === 'chat' || prompt.kind === 'completion';
    if (first.refused === undefined || !logprobs || !generates) return first;
    const again = await this.#post(place, prompt, false, signal);
    if (again.refused === undefined) this.#untold.add(place.backend);
    return again;
  }

  async #post(
    place: Place,
    prompt: GoldenPrompt,
    logprobs: boolean,
    signal: AbortSignal,
  ): Promise<GoldenAnswer> {
    const { settings } = place;
    const cap = dialectOf(settings.engine).chatCap ?? 'max_tokens';
    const { path, body } = callOf(prompt, { model: settings.model, logprobs, cap });
    const url = new URL(urlOf(place, path));
    const { statusCode, body: answer } = await this.#pool(place, url.origin).request({
      method: 'POST',
      path: url.pathname,
      headers: { 'content-type': 'application/json', ...headersTo(settings) },
      body: JSON.stringify(body),
      signal,
      headersTimeout: settings.timeouts.total,
      bodyTimeout: settings.timeouts.total,
    });
    const text = await answer.text();
    if (REFUSALS.has(statusCode)) return { refused: statusCode };
    if (statusCode !== 200)
      throw new Error(`${place.endpoint} answered ${statusCode}: ${text.slice(0, 200)}`);
    return readAnswer(prompt.kind, JSON.parse(text));
  }

  #pool({ backend, settings }: Place, origin: string): Pool {
    const key = `${backend}|${origin}|${JSON.stringify('tls' in settings ? settings.tls : undefined)}`;
    let pool = this.#pools.get(key);
    if (!pool) {
      const tls = 'tls' in settings ? tlsOf(settings.tls as Parameters<typeof tlsOf>[0]) : {};
      pool = new Pool(origin, {
        connections: CONNECTIONS_MAX,
        maxResponseSize: ANSWER_BYTES_MAX,
        connect: { timeout: settings.timeouts.connect, ...tls },
      });
      this.#pools.set(key, pool);
    }
    return pool;
  }
}

/** Hosts of ours serve both protocols at one address, and are told with `/v1`. */
export function urlOf({ endpoint }: Pick<Place, 'endpoint'>, path: string): string {
  return /^\/v2(\/|$)/.test(path) ? endpoint.replace(/\/v1$/, '') + path : endpoint + path;
}

export function headersTo(settings: BackendSettings): Record<string, string> {
  return 'auth' in settings ? headersOf(settings.auth) : {};
}
