import type { Dialect } from './contracts.ts';
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
