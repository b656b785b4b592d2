import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { type Armature, backendOf, startArmature } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chatAnswer } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';
import { eventually } from '../upstream/waiting.ts';

/** Drift over real sockets and processes: from answers of an engine to the alarm, the hook and the chain that `why` walks. */

const AT_ONCE = 20;
/** A program that says the alarm it was told of as its job. */
const TRAINER = `const told = JSON.parse(require('node:fs').readFileSync(0)); console.log(JSON.stringify({ job: told.alarm }))`;

/** Answers with lengths by chance, and log-probabilities; what it answers can be changed. */
function changing() {
  const random = seededRandom(1);
  const state = { longer: 0, words: 'The quick brown fox jumps over the lazy dog and runs home' };
  const script: Script = async (x) => {
    const tokens = 50 + Math.floor(100 * random.next()) + state.longer;
    const [choice] = chatAnswer(state.words)['choices'] as Json[];
    const logprobs = { content: [{ logprob: -0.1 * random.next() }, { logprob: -0.5 }] };
    await x.json(
      chatAnswer(state.words, {
        choices: [{ ...choice, logprobs }],
        usage: { prompt_tokens: 9, completion_tokens: tokens, total_tokens: tokens + 9 },
      }),
    );
  };
  return { state, script };
}

const features = ['answerTokens', 'answerLanguage', 'finishReason', 'confidence'];
const drift = {
  features,
  sample: '100000/s',
  reference: { size: 200 },
  freshRows: 50,
  targetRunLength: 100_000,
};

async function world(more: object) {
  const stack = new AsyncDisposableStack();
  const { state, script } = changing();
  const engine = stack.use(await startEngine(script));
  const armature = stack.use(
    await startArmature({
      backends: { b1: backendOf(engine) },
      routes: { chat: { targets: [{ backend: 'b1' }], drift: { ...drift, ...more } } },
    }),
  );
  return { state, armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function send(armature: Armature, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const answers = await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - sent) }, () => armature.chat()),
    );
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      ids.push(answer.header('x-armature-id')!);
    }
  }
  return ids;
}

async function viewOf(armature: Armature): Promise<Json> {
  const answer = await armature.admin('/api/v1/drift/chat');
  expect(answer.status).toBe(200);
  return JSON.parse(answer.content.toString()).data[0];
}

/** Sends until what is awaited has come. */
async function sendUntil(armature: Armature, what: string, holds: (view: Json) => boolean): Promise<Json> {
  return eventually(
    what,
    async () => {
      await send(armature, 100);
      const view = await viewOf(armature);
      return view && holds(view) ? view : undefined;
    },
    30_000,
  );
}

const isWatching = (view: Json) => view['features'].every(({ state }: Json) => state === 'watching');

describe('drift', () => {
  it('is found, survives the death of control, is confirmed, starts a job, and why walks the chain', async () => {
    const heard: { body: string; signature: unknown }[] = [];
    const hook = createServer((request, response) => {
      let body = '';
      request.on('data', (piece) => (body += piece));
      request.on('end', () => {
        heard.push({ body, signature: request.headers['x-armature-signature'] });
        response.end('{"job": "train-7"}');
      });
    });
    await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => void hook.close());
    const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/train`;
    await using it = await world({ hook: { url, secret: 'quiet' } });
    const { armature, state } = it;
    await sendUntil(armature, 'references of all features', isWatching);
    state.longer = 80;
    const alarmed = await sendUntil(armature, 'an alarm', (view) => view['incident'] !== null);
    const { incident } = alarmed;
    expect(incident).toMatchObject({ feature: 'answerTokens', change: 'distribution', direction: 'higher' });
    expect(incident.effect.median).toBeGreaterThan(incident.effect.medianBefore);
    expect(await armature.metric('armature_drift_incidents', { route: 'chat', backend: 'b1' })).toBe(1);
    await eventually(
      'the alarm is in the ledger',
      async () => (await armature.events('drift-detected')).length > 0,
    );
    const before = armature.kill('control');
    const isBack = () => armature.parts().some(({ part, pid }) => part === 'control' && pid !== before);
    await eventually('another control', isBack, 15_000);
    await eventually(
      'control is back',
      async () => (await armature.admin('/api/v1/status').catch(() => undefined))?.status === 200,
      15_000,
    );
    const confirmed = await sendUntil(armature, 'a job', (view) => view['incident']?.hook?.state === 'asked');
    expect(confirmed['incident']).toMatchObject({
      event: incident.event,
      state: 'confirmed',
      hook: { job: 'train-7' },
    });
    expect(await armature.events('drift-detected')).toHaveLength(1);
    expect(await armature.events('drift-confirmed')).toHaveLength(1);
    const [{ body, signature }] = heard as [(typeof heard)[number]];
    expect(JSON.parse(body)).toMatchObject({
      alarm: incident.event,
      route: 'chat',
      backend: 'b1',
      feature: 'answerTokens',
    });
    expect(signature).toBe(`sha256=${createHmac('sha256', 'quiet').update(body).digest('hex')}`);
    const [asked] = await armature.events('retraining-asked');
    const chain: Json = await armature.why(asked!['id']);
    expect(chain['steps'].map(({ code }: Json) => code)).toEqual([
      'retraining-asked',
      'drift-confirmed',
      'drift-detected',
    ]);
    const renewed = await armature.run('drift', 'refreeze', 'chat');
    expect(renewed.stdout).toContain('new references of 1 backends');
    expect((await viewOf(armature))['incident']).toBeNull();
    expect(await armature.metric('armature_drift_incidents')).toBe(0);
    expect((await armature.run('drift')).stdout).toContain('b1');
    const shown = await armature.run('drift', 'show', 'chat', '--json');
    expect(JSON.parse(shown.stdout).data[0]).toMatchObject({ name: 'chat|b1', incident: null });
    expect((await armature.run('drift', 'show', 'nothing')).exitCode).toBe(1);
  });

  it('tells languages apart, keeps predictions until labels come, and runs a program as its hook', async () => {
    await using it = await world({ labels: 200, hook: { command: [process.execPath, '-e', TRAINER] } });
    const { armature, state } = it;
    const ids = await send(armature, 100);
    await sendUntil(armature, 'references of all features', isWatching);
    const label = (labels: object[]) => labelled(armature, labels);
    expect(await label(ids.map((request, i) => ({ request, right: i % 4 > 0 })))).toEqual({
      matched: 100,
      unmatched: 0,
      unusable: 0,
    });
    expect(
      await label([
        { request: ids[0], right: true },
        { request: 'req_none', right: true },
      ]),
    ).toMatchObject({ unmatched: 2 });
    expect((await viewOf(armature))['quality']).toMatchObject({ labels: 100, state: 'learning' });
    state.words = 'Der schnelle braune Fuchs springt über den faulen Hund und läuft nach Hause';
    const alarmed = await sendUntil(armature, 'another language', (view) => view['incident'] !== null);
    expect(alarmed['incident']).toMatchObject({ feature: 'answerLanguage' });
    const confirmed = await sendUntil(armature, 'a job', (view) => view['incident']?.hook?.state === 'asked');
    expect(confirmed['incident'].hook).toMatchObject({ attempts: 1, job: alarmed['incident'].event });
  });
});

async function labelled(armature: Armature, labels: object[]): Promise<Json> {
  const token = readFileSync(join(armature.data, 'run', 'admin.token'), 'utf8').trim();
  const answer = await armature.admin('/api/v1/drift/labels', {
    method: 'POST',
    body: { labels },
    headers: [['authorization', `Bearer ${token}`]],
  });
  expect(answer.status).toBe(200);
  return JSON.parse(answer.content.toString());
}
