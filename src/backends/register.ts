import type { Dialect, GaugeNames } from './contracts.ts';
import { oipDialects } from './oip/dialects.ts';
import { openaiDialects } from './openai/dialects.ts';

/** Hosts of our own: they speak both protocols, and answer /health. */
const hostDialects: readonly Dialect[] = ['local', 'sim'].map((engine) => ({
  engine,
  protocol: 'openai',
  healthPath: '/health',
  gaugesPath: '/metrics',
  gauges: {
    waiting: ['armature_host_waiting'],
    running: ['armature_host_running'],
    cache: ['armature_host_cache_used'],
  },
  streamUsage: true,
  ...(engine === 'local' ? { tokenizes: 'vllm' as const } : {}),
  binaryTensors: true,
}));

const dialects = new Map<string, Dialect>(
  [...openaiDialects, ...oipDialects, ...hostDialects].map((dialect) => [dialect.engine, dialect]),
);

/** How to speak to an engine. The configuration's schema lets no other engine through. */
export function dialectOf(engine: string): Dialect {
  const dialect = dialects.get(engine);
  if (!dialect) throw new Error(`no dialect for engine ${engine}`);
  return dialect;
}

/** The names of an engine's load gauges; those of every engine of its protocol where the configuration names none. */
export function gaugeNamesOf(engine: string): GaugeNames {
  const { protocol, gauges } = dialectOf(engine);
  if (engine !== 'openai' && engine !== 'oip') return gauges;
  const all = [...dialects.values()].filter((dialect) => dialect.protocol === protocol);
  return {
    waiting: all.flatMap((dialect) => dialect.gauges.waiting),
    running: all.flatMap((dialect) => dialect.gauges.running),
    cache: all.flatMap((dialect) => dialect.gauges.cache),
  };
}
