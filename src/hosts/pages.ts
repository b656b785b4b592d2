import type { Exchange } from './listener.ts';

/** What every host shows of itself. */

/** OpenAI's list of models, with the one that a host serves. */
export function modelList(model: string, startedSeconds: number, more: object = {}): object {
  return {
    object: 'list',
    data: [{ id: model, object: 'model', created: startedSeconds, owned_by: 'armature', ...more }],
  };
}

/** Load gauges for Prometheus. `cacheUsed` is a share, 0 to 1; left out where there is no cache. */
export function gauges(
  exchange: Exchange,
  load: { waiting: number; running: number; cacheUsed?: number },
): void {
  const gauge = (name: string, help: string, value: number) =>
    `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name} ${value}\n`;
  exchange.answer(
    200,
    gauge('armature_host_waiting', 'Requests that wait for their turn.', load.waiting) +
      gauge('armature_host_running', 'Requests that are being computed.', load.running) +
      (load.cacheUsed === undefined
        ? ''
        : gauge('armature_host_cache_used', 'Share of the context cache in use.', load.cacheUsed)),
    { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
  );
}
