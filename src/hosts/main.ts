import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../kernel/clock.ts';
import { systemRandom } from '../kernel/random.ts';
import { systemTimers } from '../kernel/timers.ts';
import { connect } from '../links/connect.ts';
import type { Message } from '../links/link.ts';
import type { HostGiven, HostToControl } from '../links/messages.ts';
import { joinSupervisor } from '../links/part.ts';
import { socketPath } from '../links/socket-path.ts';
import { createLogger, type Logger } from '../telemetry/logger.ts';
import type { HostOrder, HostServer } from './contracts.ts';
import { cacheFolder } from './models/cache.ts';
import { fetchModel } from './models/fetch-model.ts';
import { serveSim } from './sim/index.ts';

/** From taking its address back until a host takes no more connections, so that gateways have heard of it. */
const RETRACT_MS = 250;
/** How long a host that has nothing to serve yet waits for its clients to end. */
const STOP_MS = 1000;
/** How long running requests may finish; the supervisor ends it sooner where `gateway.drain` is shorter. */
const DRAIN_MS = 600_000;

const timing = { clock: systemClock, timers: systemTimers, random: systemRandom };

/**
 * A model host's process: `host --data DIR --backend NAME --given JSON`, the latter a HostGiven. It loads the model,
 * fetching it where it is missing, serves it on a free port of the loopback interface, and tells control where. Ends
 * with 1, having said why, where it cannot.
 */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      data: { type: 'string' },
      backend: { type: 'string' },
      given: { type: 'string' },
    },
  });
  const { data, backend, given } = values;
  if (data === undefined || backend === undefined || given === undefined) {
    throw new Error('host wants --data DIR, --backend NAME and --given JSON');
  }
  const part = `host-${backend}`;
  const log = createLogger(part);
  const presence = announce(resolve(data), part, backend, () => void leave('orphaned'));

  const leaving = new AbortController();
  let server: HostServer | undefined;
  async function leave(why: string): Promise<void> {
    if (leaving.signal.aborted) return;
    leaving.abort();
    log.info({ why }, 'leaving');
    presence.tell({ address: '', note: 'leaving', leaving: true });
    if (server) await pass(RETRACT_MS);
    // What is being fetched ends now, and its clients with it; a model that is being loaded is not waited for.
    else await Promise.race([starting.catch(() => undefined), pass(STOP_MS)]);
    await server?.close(DRAIN_MS);
    await presence.close();
    process.exit(0);
  }
  process.on('SIGTERM', () => void leave('SIGTERM'));
  process.on('SIGINT', () => void leave('SIGINT'));

  const order = {
    backend,
    ...timing,
    note: (note: string) => presence.tell({ address: '', note }),
    fetching: (note: string) => presence.tell({ address: '', note, fetching: true }),
    warn: (text: string, err?: unknown) => log.warn({ err }, text),
  };
  const starting = serve(JSON.parse(given) as HostGiven, order, log, leaving.signal);
  try {
    server = await starting;
  } catch (error) {
    if (leaving.signal.aborted) return;
    log.fatal(`cannot serve: ${(error as Error).message}`);
    await presence.close();
    process.exit(1);
  }
  if (leaving.signal.aborted) return;
  presence.tell({ address: server.address, note: '' });
  log.info({ address: server.address }, 'serving');
}

function pass(ms: number): Promise<void> {
  return new Promise((done) => systemTimers.set(ms, done));
}

type HostNews = Pick<HostToControl, 'address' | 'note' | 'fetching' | 'tookMs' | 'leaving'>;

/** Tells the supervisor and control who this is, now and whenever one of them is back. */
function announce(dataDir: string, part: string, backend: string, onOrphaned: () => void) {
  const boot = randomBytes(8).toString('hex');
  let known: HostNews = { address: '', note: 'starting' };
  let fetchedMs = 0;
  let fetchingSince: number | undefined;
  // A process's clock begins with the process.
  const startedMs = () => timing.clock.mono() - fetchedMs;
  const hello = (): HostToControl => ({
    type: 'hello',
    role: 'host',
    part,
    pid: process.pid,
    boot,
    backend,
    upMs: Math.round(startedMs()),
    ...known,
  });
  const supervisor = joinSupervisor({ dataDir, role: 'host', part, boot, onOrphaned, ...timing });
  const control = connect<Message, HostToControl>(socketPath(dataDir, 'control'), {
    hello,
    onMessage: () => {},
    ...timing,
  });
  return {
    tell(news: HostNews): void {
      const now = timing.clock.mono();
      if (news.fetching) fetchingSince ??= now;
      else if (fetchingSince !== undefined) {
        fetchedMs += now - fetchingSince;
        fetchingSince = undefined;
      }
      known = news.address === '' ? news : { ...news, tookMs: Math.round(startedMs()) };
      control.send(hello());
    },
    async close(): Promise<void> {
      await Promise.all([supervisor.close(), control.close()]);
    },
  };
}

async function serve(
  { backend, model }: HostGiven,
  { fetching, ...order }: Omit<HostOrder, 'settings'> & { fetching: (note: string) => void },
  log: Logger,
  signal: AbortSignal,
): Promise<HostServer> {
  if (backend.engine === 'sim') return serveSim({ ...order, settings: backend });
  if (!model) throw new Error(`there is no model ${backend.model}`);
  const files = await fetchModel(backend.model, model, {
    folder: cacheFolder(),
    log,
    signal,
    ...order,
    note: fetching,
  });
  const local = { ...order, settings: backend, modelPath: files.modelPath };
  if (model.format === 'gguf') return (await import('./llama/index.ts')).serveLlama(local);
  const { serveOnnx } = await import('./onnx/index.ts');
  // With a tokenizer it makes embeddings, unless it is said to take tensors.
  const tokenizerPath = model.task === 'tensors' ? undefined : files.tokenizerPath;
  const prepared = backend.host.prepared && tokenizerPath !== undefined;
  return serveOnnx({ ...local, tokenizerPath: prepared ? undefined : tokenizerPath, prepared });
}
