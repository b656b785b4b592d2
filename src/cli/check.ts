import { type Fault, faultsAsJson, formatFaults, formatNotice } from '../config/faults.ts';
import { CONFIG_FILE, type LoadedConfig, loadConfig } from '../config/load.ts';
import { defineCommand } from './command.ts';
import type { Output } from './output.ts';

export const command = defineCommand({
  async run({ common, output }) {
    const file = common.config ?? CONFIG_FILE;
    const loaded = loadConfig(file);
    if (!loaded.ok) {
      if (common.json) output.json({ ok: false, faults: faultsAsJson(loaded.faults), notices: [] });
      reportFaults(loaded.faults, output);
      return 2;
    }
    const { config } = loaded;
    if (common.json) {
      output.json({ ok: true, faults: [], notices: config.notices, summary: counts(config) });
      return 0;
    }
    output.print(summary(file, config));
    for (const notice of config.notices) output.print(`  note: ${formatNotice(notice)}`);
    return 0;
  },
});

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
