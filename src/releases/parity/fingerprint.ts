import type { Settings } from '../../config/schema/index.ts';
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
    const [before, after] = [JSON.stringify(then.settings[name]), JSON.stringify(settings[name])];
    if (canonical(then.settings[name]) !== canonical(settings[name]))
      return `${name} was ${cut(before)} and is ${cut(after)}`;
  }
  const strange = told.find((each) => !then.told.includes(each));
  if (strange === undefined) return undefined;
  return then.told.length === 0
    ? `an endpoint tells of itself ${cut(strange)}, and told nothing then`
    : `an endpoint tells of itself ${cut(strange)}, and told ${cut(then.told.join(' or '))} then`;
}

/** JSON with the members of every object in the order of their names. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

const CHARS_MAX = 300;
const cut = (text = 'nothing') => (text.length <= CHARS_MAX ? text : `${text.slice(0, CHARS_MAX)}...`);
