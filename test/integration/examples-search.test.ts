import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { packagesFolder, readProvision } from '../engines/provisioned.ts';
import { freePort } from '../upstream/armature.ts';
import { killRemains } from '../upstream/parts.ts';
import { realModels } from './models/real-models.ts';

/** examples/search: its configurations, and one question to its real models with the answer of a foreign engine. */

const examples = join(import.meta.dirname, '../../examples');
const RUN_MS = 300_000;

function settingsOf(file: string) {
  const loaded = loadConfig(join(examples, file));
  if (!loaded.ok) throw new Error(`${file}: ${JSON.stringify(loaded)}`);
  return loaded.config.settings;
}

describe('the configurations of the examples', () => {
  it.each(['quickstart/armature.yaml', 'search/local.yaml', 'search/foreign.yaml'])(
    '%s has no fault',
    (file) => {
      expect(Object.keys(settingsOf(file).routes)).not.toEqual([]);
    },
  );

  it('differ by the backend of one stage alone', () => {
    const [local, foreign] = [settingsOf('search/local.yaml'), settingsOf('search/foreign.yaml')];
    expect(foreign.routes['answers']!.targets).toMatchObject([{ backend: 'llama' }]);
    delete foreign.backends['llama'];
    foreign.routes['answers'] = local.routes['answers']!;
    expect(foreign).toEqual(local);
  });
});

describe('the search example', () => {
  it('finds, sums up and answers, with one stage on a foreign engine', {
    timeout: RUN_MS,
  }, async (context) => {
    const { python, missing } = readProvision();
    const models = await realModels();
    if (missing['llama.cpp'] !== undefined) context.skip(missing['llama.cpp']);
    if (typeof models === 'string') context.skip(models);

    const home = mkdtempSync(join(tmpdir(), 'armature-search-'));
    try {
      await withPortsOfItsOwn(home);
      const args = ['--foreign', '-c', join(home, 'foreign.yaml'), '--data', join(home, 'data')];
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [join(examples, 'search/run.mjs'), ...args, 'What should we check before a website goes live?'],
        { env: { ...process.env, PYTHON: python, PYTHONPATH: packagesFolder() }, timeout: RUN_MS },
      );
      expect(stdout).toContain('Go-Live Checklist for Federal Websites (2022)');
      expect(stdout).toMatch(/intent +answered, \d+ ms, by small-embeddings, intent: howto/);
      for (const stage of ['nearest', 'words']) {
        expect(stdout).toMatch(new RegExp(`${stage} +answered, .*8 passages`));
      }
      expect(stdout).toMatch(/best +\w+, 3 passages/);
      // A machine that is very busy may be too late for a summary, and does without.
      expect(stdout).toMatch(/summary +(answered, .* by small-chat|skipped)/);
      expect(stdout).toMatch(/answer +answered, .* by llama, \d+ tokens read, [1-9]/);
      expect(stdout).toMatch(/Stage answer answered after .* by llama/);
    } finally {
      killRemains(join(home, 'data'));
      rmSync(home, { recursive: true, force: true });
    }
  });
});

const PORT = /\b70\d\d\b/g;

/** The example's configuration, for a machine on which other things run, and without the hub's larger model. */
async function withPortsOfItsOwn(home: string): Promise<void> {
  const ports = new Map<string, string>();
  for (const name of readdirSync(join(examples, 'search')).filter((each) => each.endsWith('.yaml'))) {
    cpSync(join(examples, 'search', name), join(home, name));
    const text = readFileSync(join(home, name), 'utf8').replace(/ +- hf:Qwen.*\n/, '');
    for (const [port] of text.matchAll(PORT)) {
      if (!ports.has(port)) ports.set(port, String(await freePort()));
    }
    writeFileSync(
      join(home, name),
      text.replaceAll(PORT, (port) => ports.get(port)!),
    );
  }
}
