import type {
  BackendSettings,
  LocalBackendSettings,
  Settings,
  SimBackendSettings,
} from '../config/schema/index.ts';
import { hostAndPort } from '../kernel/listen-address.ts';
import type { HostGiven, PartSpec } from '../links/messages.ts';

/** How long a part may take to leave when nothing runs in it any more. */
const LEAVE_MS = 5000;

/** Where a running Armature keeps its state, and the file it was told to run. Both absolute. */
export interface Place {
  data: string;
  file: string;
}

/**
 * Which processes run for these settings: control, every gateway worker, and a host for each local or simulated
 * backend, save for those that are `idle`. The supervisor starts them, and control says `want` with the same list when the
 * configuration changes.
 */
export function parts(settings: Settings, place: Place, idle: readonly string[] = []): PartSpec[] {
  // Running requests may take `drain`; what is left is ended, told and stored in the time after it.
  const graceMs = settings.gateway.drain + settings.gateway.drainDelay + LEAVE_MS;
  const data = ['--data', place.data];
  const file = ['-c', place.file];
  const { gateway, admin, store } = settings;
  const wanted: PartSpec[] = [
    {
      part: 'control',
      role: 'control',
      args: ['control', ...data, ...file],
      revision: JSON.stringify([admin.listen, admin.tls, store.url]),
      address: addressOf(admin),
    },
  ];
  // Workers share the address. What they listen on is what they cannot change while they run.
  const listener = { revision: JSON.stringify([gateway.listen, gateway.tls]), address: addressOf(gateway) };
  for (let worker = 0; worker < gateway.workers; worker++) {
    const args = ['gateway', ...data, '--worker', String(worker)];
    wanted.push({ part: `gateway-${worker}`, role: 'gateway', args, graceMs, ...listener });
  }
  for (const [name, backend] of Object.entries(settings.backends)) {
    if (!isHosted(backend) || idle.includes(name)) continue;
    const given = JSON.stringify(hostGiven(settings, backend));
    const args = ['host', ...data, '--backend', name, '--given', given];
    wanted.push({ part: hostPart(name), role: 'host', args, graceMs });
  }
  return wanted;
}

/** The part that serves a backend. */
export function hostPart(backend: string): string {
  return `host-${backend}`;
}

/** Where a listener is asked from this machine: what listens on every address is asked on loopback. */
function addressOf({ listen, tls }: { listen: string; tls?: unknown }): string {
  const { host, port } = hostAndPort(listen);
  const asked = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `${tls ? 'https' : 'http'}://${asked.includes(':') ? `[${asked}]` : asked}:${port}`;
}

type HostedSettings = LocalBackendSettings | SimBackendSettings;

/** Whether a backend is served by a host of ours instead of an engine that runs elsewhere. */
export function isHosted(backend: BackendSettings): backend is HostedSettings {
  return backend.engine === 'local' || backend.engine === 'sim';
}

/**
 * What a host works on. It reads no file, so that what was changed live holds for it as for everybody; and as it is an
 * argument, a host is started anew when it changes, and left alone when only the way to it does.
 */
function hostGiven(settings: Settings, backend: HostedSettings): HostGiven {
  const {
    limits: _limits,
    timeouts: _timeouts,
    hardware: _hardware,
    tier: _tier,
    price: _price,
    effects: _effects,
    ...own
  } = backend;
  if (own.engine === 'sim') return { backend: { ...own, host: {} } };
  const { idleStop: _idleStop, ...host } = own.host; // when it is stopped is not its own business
  const model = settings.models[own.model];
  return { backend: { ...own, host }, ...(model && { model }) };
}
