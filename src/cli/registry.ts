import type {
  AliasView,
  AliasViewInFull,
  DifferenceView,
  RegisteredInFull,
  RegisteredModel,
  VersionViewInFull,
} from '../api/contracts.ts';
import { systemClock } from '../kernel/clock.ts';
import { formatSize } from '../kernel/units.ts';
import { allOf } from './all-of.ts';
import { type ActionGroup, askedWrongly, defineAction, failed, wholeNumber } from './command.ts';
import { table } from './output.ts';
import { add } from './registry-add.ts';
import { shownDifference, shownVersion } from './registry-shown.ts';
import { atVersion, followSteps, read, referenceIn, stepsShown } from './registry-steps.ts';
import { findRunning } from './running.ts';

const VERSION = { name: 'NAME@VERSION', summary: 'By number, fraud@3, or by alias, fraud@production.' };
const NAME = { name: 'NAME', summary: 'Of a model.' };
const PAGE = 1000;

const ls = defineAction({
  summary: 'list models, or the versions and aliases of one',
  arguments: [{ ...NAME, optional: true }],
  async run({ args: [name], common, output }) {
    const running = await findRunning(common);
    if (name === undefined) {
      const models = await allOf<RegisteredModel>(running, '/api/v1/registry');
      if (common.json) output.json({ models });
      else if (models.length === 0) output.note('No versions are kept yet: armature registry add NAME');
      else
        output.print(
          table(
            ['model', 'versions', 'newest', 'aliases'],
            models.map((each) => [each.name, each.versions, each.newest ?? '-', each.aliases]),
          ),
        );
      return;
    }
    const path = `/api/v1/registry/${encodeURIComponent(name)}`;
    const { aliases } = await running.call<RegisteredInFull>(path);
    const versions = await allOf<RegisteredInFull['data'][number]>(running, path);
    if (common.json) {
      output.json({ name, aliases, versions });
      return;
    }
    const rows = versions.map((each) => [
      each.version,
      each.state,
      String(each.manifest.format ?? '-'),
      String(each.manifest.precision ?? '-'),
      formatSize(each.bytes),
      each.sealedAt,
      each.aliases.join(', ') || '-',
    ]);
    output.print(table(['version', 'state', 'format', 'precision', 'size', 'sealed', 'aliases'], rows));
  },
});

const show = defineAction({
  summary: 'show a version: its manifest, its files, and who uses it',
  arguments: [VERSION],
  async run({ args: [text = ''], common, output }) {
    const running = await findRunning(common);
    const version = await read<VersionViewInFull>(running, text, '');
    if (common.json) output.json(version);
    else output.print(shownVersion(version));
  },
});

const alias = defineAction({
  summary: 'lead an alias to a version, or show where it leads and led',
  arguments: [
    NAME,
    { name: 'ALIAS', summary: 'A name that begins with a letter, such as production.' },
    {
      name: 'VERSION',
      summary: 'The number that it is to lead to; without one it is shown.',
      optional: true,
    },
  ],
  options: {
    expect: {
      value: 'VERSION',
      summary: 'The number that it must lead to now, or none where it must not be there; else it is refused.',
      parse: (text: string) => (text === 'none' ? text : wholeNumber(1)(text)),
    },
    remove: { summary: 'Takes it away; its history stays.' },
  },
  async run({ args: [name = '', label = '', to], options, common, output }) {
    const running = await findRunning(common);
    const path = `/api/v1/registry/${encodeURIComponent(name)}/aliases/${encodeURIComponent(label)}`;
    if (options.remove) {
      if (to !== undefined) throw askedWrongly('--remove takes no version');
      const expect = typeof options.expect === 'number' ? `?expect=${options.expect}` : '';
      await running.call(path + expect, { method: 'DELETE' });
      if (common.json) output.json({ model: name, alias: label, removed: true });
      else output.print(`${name}@${label} is taken away`);
      return;
    }
    if (to === undefined) {
      const found = await running.call<AliasViewInFull>(`${path}?limit=${PAGE}`);
      if (common.json) output.json(found);
      else {
        output.print(`${name}@${label} leads to ${found.version}, revision ${found.revision}`);
        const rows = found.history.map((move) => [move.revision, move.number ?? 'none', move.at, move.actor]);
        output.print(table(['revision', 'version', 'moved', 'by'], rows));
      }
      return;
    }
    const version = wholeNumber(1)(to.replace(`${name}@`, ''));
    const expect = options.expect === 'none' ? null : options.expect;
    const body = { version, ...(expect !== undefined && { expect }) };
    const moved = await running.call<AliasView>(path, { method: 'PUT', body });
    if (common.json) output.json(moved);
    else output.print(`${name}@${label} leads to ${moved.version}, revision ${moved.revision}`);
  },
});

/** What takes a while, told step by step; with --json as JSON lines. */
function taking(what: 'verify' | 'archive' | 'restore', summary: string) {
  return defineAction({
    summary,
    arguments: [VERSION],
    details: 'With --json, what happens comes as JSON lines; the last one is the outcome.',
    async run({ args: [text = ''], common, output }) {
      const running = await findRunning(common);
      const path = await atVersion(running, text);
      const shown = stepsShown(common.json, output, systemClock);
      const done = await followSteps(running.lines(`${path}/${what}`, { method: 'POST' }), shown);
      if (common.json) output.json(done);
      else if (what !== 'verify')
        output.print(`${done.version} is ${done.state}; files that were moved: ${done.moved}`);
      else if (done.ok) output.print(`${done.version}: all ${done.files} files are as they were`);
      if (done.ok !== false) return 0;
      const damaged = done.damaged as { path: string; message: string }[];
      throw failed(damaged.map(({ path, message }) => `${path}: ${message}`).join('\n'));
    },
  });
}

const diff = defineAction({
  summary: 'show what two versions say differently',
  arguments: [
    { ...VERSION, name: 'BEFORE' },
    { ...VERSION, name: 'AFTER' },
  ],
  async run({ args: [before = '', after = ''], common, output }) {
    const running = await findRunning(common);
    referenceIn(after);
    const found = await read<DifferenceView>(running, before, `/diff?to=${encodeURIComponent(after)}`);
    if (common.json) output.json(found);
    else output.print(shownDifference(found));
  },
});

const rm = defineAction({
  summary: 'remove a version that nobody uses',
  arguments: [VERSION],
  async run({ args: [text = ''], common, output }) {
    const running = await findRunning(common);
    if (!('number' in referenceIn(text)))
      throw askedWrongly('say which by its number, NAME@NUMBER: what an alias leads to may have changed');
    const removed = await running.call<{ version: string }>(await atVersion(running, text), {
      method: 'DELETE',
    });
    if (common.json) output.json(removed);
    else output.print(`${removed.version} is removed`);
  },
});

export const command: ActionGroup = {
  actions: {
    add,
    ls,
    show,
    alias,
    verify: taking('verify', 'read every file of a version, and tell what is not as it was'),
    archive: taking('archive', 'move the files of a version that nobody uses into the archive'),
    restore: taking('restore', 'bring an archived version back'),
    diff,
    rm,
  },
  defaultAction: 'ls',
};
