import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../upstream/armature.ts';
import { killRemains, partsOf } from '../upstream/parts.ts';
import { within } from '../upstream/waiting.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const START_MS = 240_000;
const LEAVE_MS = 60_000;

let home: string;
let started: ChildProcess;
let said = '';
let gateway: string;

/** `npm start` as it is, save for its ports and its data directory: other things may run on this machine. */
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'armature-start-'));
  const [port, admin] = [await freePort(), await freePort()];
  gateway = `http://127.0.0.1:${port}`;
  const quickstart = readFileSync(join(root, 'examples/quickstart/armature.yaml'), 'utf8');
  const listeners = `gateway: { listen: "127.0.0.1:${port}" }\nadmin: { listen: "127.0.0.1:${admin}" }\n`;
  writeFileSync(join(home, 'armature.yaml'), listeners + quickstart);

  const args = ['start', '--silent', '--', '-c', join(home, 'armature.yaml'), '--data', join(home, 'data')];
  started = spawn('npm', args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: started.stdout! })) {
    said += `${line}\n`;
    if (line.includes('Ctrl-C stops everything')) break;
  }
  started.stdout!.resume();
  expect(said).toContain(`Armature answers at ${gateway}`);
}, START_MS);

afterAll(async () => {
  try {
    const exit = once(started, 'exit');
    started.kill('SIGTERM');
    if (started.exitCode === null) await within('npm start leaves', LEAVE_MS, exit);
    expect(partsOf(join(home, 'data'))).toEqual([]);
  } finally {
    killRemains(join(home, 'data'));
    rmSync(home, { recursive: true, force: true });
  }
});

async function ask(path: string, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(gateway + path, { method: 'POST', headers, body: JSON.stringify(body) });
}

describe('npm start', () => {
  it('says what to try next', () => {
    for (const word of ['bin/armature ask', 'bin/armature status', 'curl', 'bin/armature why ID']) {
      expect(said).toContain(word);
    }
  });

  it('answers a chat from a real model, in full', async () => {
    const messages = [{ role: 'user', content: 'Say hello in five words.' }];
    const answer = await ask('/v1/chat/completions', { model: 'chat', messages, max_tokens: 16 });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-armature-degraded')).toBeNull();
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
    expect(choices[0]!.message.content.length).toBeGreaterThan(0);
  });

  it('answers an embedding from a real model: what means the same lies close', async () => {
    const input = [
      'The cat sleeps on the sofa.',
      'A kitten naps on the couch.',
      'Interest rates rose again.',
    ];
    const answer = await ask('/v1/embeddings', { model: 'embeddings', input });
    expect(answer.status).toBe(200);
    const { data } = (await answer.json()) as { data: { embedding: number[] }[] };
    const [cat, kitten, rates] = data.map(({ embedding }) => embedding) as [number[], number[], number[]];
    const cosine = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    expect(cosine(cat, kitten)).toBeGreaterThan(cosine(cat, rates) + 0.2);
  });
});
