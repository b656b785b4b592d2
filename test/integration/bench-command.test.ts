import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { main } from '../../src/cli/program.ts';
import { settingsSchema } from '../../src/config/schema/index.ts';
import type { HostServer } from '../../src/hosts/contracts.ts';
import { type SimSettings, serveSim } from '../../src/hosts/sim/index.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import type { Report } from '../../src/load/report.ts';
import { readSamples, type Sample } from '../../src/load/samples.ts';
import { readTrace } from '../../src/load/trace.ts';
import { Printed } from '../printed.ts';

let host: HostServer | undefined;
let server: Server | undefined;

afterEach(async () => {
  await host?.close(0);
  server?.closeAllConnections();
  server?.close();
  host = undefined;
  server = undefined;
});

async function simulated(): Promise<string> {
  const settings = settingsSchema.parse({
    backends: {
      b: {
        engine: 'sim',
        model: 'sim',
        profile: { prefillTokensPerSecond: 1e6, decodeTokensPerSecond: 1000 },
      },
    },
  }).backends.b as SimSettings;
  const parts = { clock: systemClock, random: systemRandom, timers: systemTimers };
  host = await serveSim({ backend: 'b', settings, ...parts, note: () => {} });
  return host.address.replace(/\/v1$/, '');
}

async function answering(answer: (response: ServerResponse, count: number) => void): Promise<string> {
  let count = 0;
  server = createServer((request, response) => {
    request.resume().on('end', () => answer(response, count++));
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Ran {
  exitCode: number;
  printed: string;
  notes: string;
}

async function bench(...argv: string[]): Promise<Ran> {
  const printed = new Printed();
  const exitCode = await main(['bench', ...argv], printed.output);
  return { exitCode, printed: printed.out, notes: printed.err };
}

async function report(...argv: string[]): Promise<Report> {
  return JSON.parse((await bench(...argv, '--json')).printed) as Report;
}

const SHORT = ['--warmup', '0s', '--duration', '1s', '--rate', '50/s', '--output-tokens', '5'];

describe('armature bench', () => {
  it.each([
    ['chats', [], { outputTokens: true, firstToken: false }],
    ['streams', ['--stream'], { outputTokens: true, firstToken: true }],
    ['embeddings', ['--embeddings'], { outputTokens: false, firstToken: false }],
    ['inference', ['--oip', '--model', 'sim'], { outputTokens: false, firstToken: false }],
  ])('measures %s', async (_, argv, has) => {
    const url = await simulated();
    const { tally, seed } = await report(url, ...argv, ...SHORT, '--arrivals', 'constant');
    expect(tally).toMatchObject({ intended: 50, ok: 50, failed: 0, statuses: { 200: 50 } });
    expect(tally.outputTokens).toBe(has.outputTokens ? 250 : 0);
    expect(tally.firstToken !== undefined).toBe(has.firstToken);
    expect(tally.betweenTokens?.count ?? 0).toBe(has.firstToken ? 200 : 0);
    expect(tally.total!.count).toBe(50);
    expect(seed).toBe(1);
  });

  it('prints a report that a person reads', async () => {
    const url = await simulated();
    const { exitCode, printed } = await bench(
      url,
      '--concurrency',
      '4',
      '--requests',
      '20',
      '--warmup',
      '0s',
    );
    expect(exitCode).toBe(0);
    expect(printed).toContain('20 intended, 20 ok, 0 failed');
    expect(printed).toMatch(/^total( +[\d.]+){7}$/m);
  });

  it('tells failures apart: statuses, answers cut short, error events, refusals', async () => {
    const chunk = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
    const word = chunk({ choices: [{ index: 0, delta: { content: 'a' } }] });
    const url = await answering((response, count) => {
      if (count % 5 === 0) response.writeHead(503, { 'retry-after': '1' }).end('{}');
      else {
        response.writeHead(200, {
          'content-type': 'text/event-stream',
          ...(count % 5 === 4 && { 'x-armature-degraded': 'answer' }),
        });
        response.write(word);
        if (count % 5 === 1) response.end(chunk({ error: { message: 'no' } }));
        else if (count % 5 === 2) setImmediate(() => response.destroy());
        else if (count % 5 === 3) response.end();
        else response.end('data: [DONE]\n\n');
      }
    });
    const run = [url, '--model', 'm', '--stream', '--concurrency', '1', '--requests', '50', '--warmup', '0s'];
    const { tally } = await report(...run);
    expect(tally).toMatchObject({
      ok: 10,
      failed: 40,
      failures: { 'http-503': 10, 'error-event': 10, cut: 20 },
      statuses: { 200: 40, 503: 10 },
      degraded: { answer: 10 },
    });
    server!.closeAllConnections();
    await new Promise((resolve) => server!.close(resolve));
    const refused = await bench(...run, '--json');
    expect(refused.exitCode).toBe(1);
    expect((JSON.parse(refused.printed) as Report).tally.failures).toEqual({ refused: 50 });
  });

  it('sends headers and the key, and asks for the model that the address lists first', async () => {
    const seen = new Set<unknown>();
    server = createServer((request, response) => {
      seen.add(`${request.method} ${request.url} ${request.headers.authorization} ${request.headers['x-a']}`);
      request.resume().on('end', () => response.end('{"data":[{"id":"first"}]}'));
    });
    await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/v1/`;
    const { model } = await report(url, '--key', 'k', '--header', 'X-A: b', ...SHORT);
    expect(model).toBe('first');
    expect(seen).toEqual(
      new Set(['GET /base/v1/models Bearer k b', 'POST /base/v1/chat/completions Bearer k b']),
    );
  });

  it.each([
    ['a rate that is none', ['--rate', 'fast'], /--rate: expected a rate/],
    ['a distribution that is none', ['--prompt-tokens', '9-1'], /--prompt-tokens: expected lengths/],
    ['two kinds of loop', ['--rate', '1', '--concurrency', '1'], /give one of them/],
    ['streamed embeddings', ['--stream', '--embeddings'], /only chats are streamed/],
    ['a trace that is not there', ['--trace', '/nowhere.csv', '--model', 'm'], /--trace: .*ENOENT/],
    ['a header that is none', ['--header', 'x'], /--header: expected NAME: VALUE/],
  ])('refuses %s', async (_, argv, message) => {
    const { exitCode, notes } = await bench('http://127.0.0.1:9', ...argv);
    expect([exitCode, notes]).toEqual([2, expect.stringMatching(message)]);
  });

  it('says so when the address does not answer', async () => {
    const { exitCode, notes } = await bench('http://127.0.0.1:9', ...SHORT);
    expect([exitCode, notes]).toEqual([1, expect.stringContaining('http://127.0.0.1:9')]);
  });

  it('writes a line for each answer, which can be read as samples and as a trace', async () => {
    const url = await simulated();
    const folder = mkdtempSync(join(tmpdir(), 'armature-samples-'));
    const file = join(folder, 'samples.jsonl');
    const asked = ['--prompt-tokens', '50-60', '--output-tokens', '3-9', '--stream', '--samples', file];
    const { exitCode } = await bench(url, '--rate', '200/s', '--warmup', '0s', '--requests', '20', ...asked);
    expect(exitCode).toBe(0);
    const samples = readSamples(file) as Sample[];
    expect(samples).toHaveLength(20);
    for (const sample of samples) {
      expect(sample.stream).toBe(true);
      expect(sample.output_length).toBeGreaterThanOrEqual(3);
      expect(sample.first_token_ms).toBeLessThanOrEqual(sample.total_ms);
    }
    const rows = readTrace(file);
    expect(rows).toHaveLength(20);
    rmSync(folder, { recursive: true });
  });
});
