import { ApiFault, type DecisionsSurface } from '../../api/contracts.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { Decisions } from '../../releases/decisions/index.ts';
import type { Registry } from '../../releases/registry/index.ts';
import { readReference } from '../../releases/registry/reference.ts';
import type { Store } from '../../store/contracts.ts';
import { orRefused } from '../registry/refusals.ts';

/** A file that is kept in the decision itself, in characters of its JSON. */
const CONTENT_CHARS_MAX = 1024 * 1024;

/** Decisions as the management API records and shows them. */
export function decisionsSurface(
  { decisions, registry }: { decisions: Decisions; registry: Registry },
  store: Store,
  settings: () => Settings,
): DecisionsSurface {
  return {
    async decisions({ limit, after }) {
      const found = await decisions.list(limit + 1, after);
      const data = found.slice(0, limit);
      return { data, next: found.length > limit ? data.at(-1)!.id : null };
    },
    async decision(id) {
      const found = await decisions.get(id);
      if (!found) throw new ApiFault(404, 'not_found', `There is no decision '${id}'.`);
      return found;
    },
    async decide(asked, actor) {
      const subjects = [...new Set(asked.for.map((name) => subjectOf(name, settings())))];
      const { version, cause } = await versionOf(registry, asked.version);
      const causes = cause === undefined ? [] : [cause];
      for (const evidence of asked.evidence) {
        if (evidence.kind === 'id') causes.push(await eventOf(store, evidence.id));
        else if (
          evidence.kind === 'file' &&
          JSON.stringify(evidence.content ?? null).length > CONTENT_CHARS_MAX
        )
          throw new ApiFault(
            400,
            'invalid_request',
            `${evidence.name} is too large to be kept in the decision`,
          );
      }
      return orRefused(decisions.add({ ...asked, for: subjects, version }, actor, [...new Set(causes)]));
    },
  };
}

/** `chat` becomes `route:chat` where only a route is called so. */
function subjectOf(name: string, { routes, backends, models }: Settings): string {
  const known: Record<string, object> = { route: routes, backend: backends, model: models };
  const [, kind, called] = /^(route|backend|model):(.+)$/.exec(name) ?? [];
  if (kind !== undefined) {
    // A model of the registry need not be one of the configuration.
    if (kind === 'model' || Object.hasOwn(known[kind]!, called!)) return name;
    throw new ApiFault(400, 'invalid_request', `There is no ${kind} '${called}'.`);
  }
  const kinds = Object.keys(known).filter((each) => Object.hasOwn(known[each]!, name));
  if (kinds.length === 1) return `${kinds[0]}:${name}`;
  const hint =
    kinds.length === 0 ? 'There is no route, backend or model' : `It is a ${kinds.join(' and a ')}`;
  throw new ApiFault(
    400,
    'invalid_request',
    `${hint} '${name}': say route:NAME, backend:NAME or model:NAME.`,
  );
}

/** A version of the registry is told by its number, whatever alias it was named by; other words stay as they are. */
async function versionOf(registry: Registry, text: string): Promise<{ version: string; cause?: string }> {
  if (!readReference(text)) return { version: text };
  const { version } = await orRefused(registry.find(text));
  return { version: `${version.model}@${version.number}`, cause: version.event };
}

const SUBJECTS: Record<string, string> = {
  rel: 'release:',
  par: 'parity:',
  dec: 'decision:',
  batch: 'batch:',
  key: 'key:',
};

/** The event that an id of the ledger leads to: itself, or the newest about what it names. */
async function eventOf(store: Store, id: string): Promise<string> {
  if (await store.ledger.event(id)) return id;
  const prefix = SUBJECTS[id.slice(0, id.indexOf('_'))];
  const subject = `${prefix ?? ''}${id}`;
  const [newest] = await store.ledger.events({ order: 'desc', subject, limit: 1 });
  if (newest) return newest.event.id;
  throw new ApiFault(404, 'not_found', `Nothing is known of '${id}', which is to be evidence.`);
}
