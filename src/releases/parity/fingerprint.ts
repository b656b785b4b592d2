import type { Settings } from '../../config/schema/index.ts';
import { type Difference, differences } from '../registry/difference.ts';
import type { Fingerprint } from './contracts.ts';

/** Settings that say how a backend is reached, watched and paid, and nothing of what it answers. */
const NOT_ITS_ANSWERS = new Set([
  'endpoints',
  'auth',
  'tls',
  'probe',
  'gauges',
  'limits',
  'timeouts',
  'price',
  'tier',
]);

/** Settings that the answers of a backend depend on, the files of a local model included; empty for one that is not there. */
export function settingsOf(backend: string, { backends, models }: Settings): Fingerprint['settings'] {
  const of = backends[backend];
  if (!of) return {};
  const own = Object.entries(of).filter(([name, value]) => !NOT_ITS_ANSWERS.has(name) && value !== undefined);
  const model = of.engine === 'local' ? models[of.model] : undefined;
  // As it is kept: without members that are undefined.
  return JSON.parse(JSON.stringify({ ...Object.fromEntries(own), ...(model && { files: model }) }));
}

/** What has changed since a certificate was given, in words; undefined where nothing has, as far as is known now. */
export function changeSince(
  then: Fingerprint,
  settings: Fingerprint['settings'],
  told: readonly string[],
): string | undefined {
  const names = new Set([...Object.keys(then.settings), ...Object.keys(settings)]);
  for (const name of names) {
    const [before, after] = [then.settings[name], settings[name]];
    if (canonical(before) !== canonical(after)) return `${name} was ${shown(before)} and is ${shown(after)}`;
  }
  const strange = told.find((each) => !then.told.includes(each));
  if (strange === undefined) return undefined;
  if (then.told.length === 0) return `an endpoint tells of itself ${cut(strange)}, and told nothing then`;
  return `of what an endpoint tells of itself, ${inShort(nearest(then.told, strange))}`;
}

/** What is different from that of what was told then that is most like it. */
function nearest(then: readonly string[], now: string): Difference[] {
  const all = then.map((each) => differences(JSON.parse(each), JSON.parse(now)));
  return all.reduce((least, each) => (each.length < least.length ? each : least));
}

function inShort(changes: readonly Difference[]): string {
  const told = changes
    .slice(0, CHANGES_MAX)
    .map(({ path, before, after }) => `${path} was ${shown(before)} and is ${shown(after)}`);
  const more = changes.length - told.length;
  return told.join(', ') + (more > 0 ? `, and ${more} more` : '');
}

/** JSON with the members of every object in the order of their names. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

const CHANGES_MAX = 3;
const CHARS_MAX = 300;
const shown = (value: unknown) => cut(JSON.stringify(value));
const cut = (text = 'nothing') => (text.length <= CHARS_MAX ? text : `${text.slice(0, CHARS_MAX)}...`);
