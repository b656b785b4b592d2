import { type Fault, faultsAsJson, formatFaults, formatNotice, type Notice } from '../config/faults.ts';
import { CONFIG_FILE, type LoadedConfig, loadConfig } from '../config/load.ts';
import { readPath } from '../config/places.ts';
import { defineCommand } from './command.ts';
import { lookUpVersions } from './known-versions.ts';
import { withLiveChanges } from './live-changes.ts';
import type { Output } from './output.ts';

export const command = defineCommand({
  async run({ common, output }) {
    const file = common.config ?? CONFIG_FILE;
    const loaded = loadConfig(file);
    const versions = loaded.ok ? lookUpVersions(loaded.config, common.data) : { faults: [], notices: [] };
    const faults = loaded.ok ? versions.faults : loaded.faults;
    if (!loaded.ok || faults.length > 0) {
      if (common.json) output.json({ ok: false, faults: faultsAsJson(faults), notices: [] });
      reportFaults(faults, output);
      return 2;
    }
    const { config } = loaded;
    const notices = [...config.notices, ...versions.notices, ...liveNotices(config, common.data)];
    if (common.json) {
      output.json({ ok: true, faults: [], notices, summary: counts(config) });
      return 0;
    }
    output.print(summary(file, config));
    for (const notice of notices) output.print(`  note: ${formatNotice(notice)}`);
    return 0;
  },
});

/** What was changed live stands over the file, or gives way to it: said here, that nobody reads the file alone. */
function liveNotices(files: LoadedConfig, data: string): Notice[] {
  const { applied, refused, unread } = withLiveChanges(files, data);
  const place = (path: string): Pick<Notice, 'file' | 'line' | 'column' | 'path' | 'code'> => {
    const { file, line, column } = files.sources.locate(readPath(path) ?? [], 'key');
    return { code: 'live-change', file, line, column, path };
  };
  const notices = applied.map(({ path, value, actor, at, release, overFile }) => {
    const by = release === undefined ? actor : `the release ${release}`;
    const until = overFile ? ': it was rolled back, and that stands until the file says the same' : '';
    const message = `was changed live to ${JSON.stringify(value)} by ${by} at ${at}, and stands over the file${until} (kept in ${data})`;
    return { ...place(path), message };
  });
  for (const { overlay, message } of refused)
    notices.push({ ...place(overlay.path), message: `a live change is refused: ${message}` });
  if (unread !== undefined)
    notices.push({ ...place(''), message: `what was changed live is not known: ${unread}` });
  return notices;
}

/** Tells faults of a configuration on stderr, as `check`, `up` and a refused change do. */
export function reportFaults(faults: readonly Fault[], output: Pick<Output, 'note'>): void {
  output.note(formatFaults(faults));
}

function counts({ settings, files }: LoadedConfig): Record<string, number> {
  const { routes, backends, tenants, models, pipelines } = settings;
  const size = (map: object | undefined): number => Object.keys(map ?? {}).length;
  return {
    files: files.length,
    routes: size(routes),
    backends: size(backends),
    tenants: size(tenants),
    models: size(models),
    pipelines: size(pipelines),
  };
}

function summary(file: string, config: LoadedConfig): string {
  const { settings, files } = config;
  const list = (what: string, names: string[]): string =>
    `  ${what.padEnd(10)}${names.length === 0 ? 'none' : names.join(', ')}`;
  const lines = [
    `${file} is valid${files.length > 1 ? `, with ${files.length - 1} included` : ''}`,
    list('routes', Object.keys(settings.routes)),
    list(
      'backends',
      Object.entries(settings.backends).map(([name, { engine }]) => `${name} (${engine})`),
    ),
    list('tenants', settings.tenants ? Object.keys(settings.tenants) : ['everybody, from this machine only']),
  ];
  if (Object.keys(settings.pipelines).length > 0)
    lines.push(list('pipelines', Object.keys(settings.pipelines)));
  return lines.join('\n');
}
