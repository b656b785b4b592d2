import { fork } from 'node:child_process';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { Durations } from '../src/telemetry/durations.ts';
import { startArmature } from '../test/upstream/armature.ts';

/**
 * What a stage of a pipeline adds: a plain client that asks three models one after another, straight, and one call of a
 * pipeline of the same three, in turns within one run. `node bench/stages.ts [--requests 3000] [--engine-ms 5]`
 */

const STAGES = 3;
/** Requests in a turn. */
const BLOCK = 50;
const WARM = 300;
const CHILD = 'engine';
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    requests: { type: 'string', default: '3000' },
    'engine-ms': { type: 'string', default: '5' },
  },
});

/** Answers every chat with one word, after a while. */
function serve(afterMs: number): void {
  const answer = JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'weather' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 8, completion_tokens: 1, total_tokens: 9 },
  });
  const server = createServer((asked, response) => {
    asked.resume();
    asked.on('end', () => {
      const give = () => response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
      if (afterMs > 0) setTimeout(give, afterMs);
      else give();
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port));
}

const agent = new Agent({ keepAlive: true });

function ask(port: number, model: string): Promise<void> {
  const body = JSON.stringify({
    model,
    messages: [{ role: 'user', content: 'Will it rain tomorrow in Oslo?' }],
  });
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (piece: string) => (text += piece));
        answer.on('end', () => {
          const said = answer.statusCode === 200 ? JSON.parse(text).choices[0].message.content : undefined;
          if (said === 'weather') resolve();
          else reject(new Error(`${answer.statusCode}: ${text}`));
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

async function measure(): Promise<void> {
  const engine = fork(import.meta.filename, [CHILD, ...process.argv.slice(2)]);
  const port = await new Promise<number>((resolve) =>
    engine.once('message', (found) => resolve(found as number)),
  );
  const stage = (i: number) => ({
    route: `r${i}`,
    budget: '3s',
    after: i === 0 ? [] : [`s${i - 1}`],
    input: i === 0 ? '{{ request.text }}' : `{{ request.text }} {{ s${i - 1} }}`,
    onFailure: 'skip',
  });
  const each = <Value>(make: (i: number) => [string, Value]) =>
    Object.fromEntries(Array.from({ length: STAGES }, (_, i) => make(i)));
  await using armature = await startArmature({
    backends: each((i) => [
      `b${i}`,
      { engine: 'openai', model: `m${i}`, endpoints: [`http://127.0.0.1:${port}/v1`] },
    ]),
    routes: each((i) => [`r${i}`, { targets: [{ backend: `b${i}` }] }]),
    pipelines: { search: { deadline: '10s', stages: each((i) => [`s${i}`, stage(i)]) } },
  });
  const plain = new Durations();
  const piped = new Durations();
  const plainOnce = async () => {
    for (let i = 0; i < STAGES; i++) await ask(port, `m${i}`);
  };
  const pipedOnce = () => ask(armature.gatewayPort, 'search');
  const turn = async (run: () => Promise<void>, into: Durations | undefined) => {
    for (let i = 0; i < BLOCK; i++) {
      const since = systemClock.mono();
      await run();
      into?.add(systemClock.mono() - since);
    }
  };
  for (let done = 0; done < WARM; done += BLOCK) {
    await turn(plainOnce, undefined);
    await turn(pipedOnce, undefined);
  }
  for (let done = 0; done < Number(values.requests); done += BLOCK) {
    await turn(plainOnce, plain);
    await turn(pipedOnce, piped);
  }
  const [straight, through] = [plain.spread()!, piped.spread()!];
  for (const at of ['p50', 'p90', 'p99'] as const) {
    const added = (through[at] - straight[at]) / STAGES;
    console.log(
      `${at}: ${STAGES} calls ${straight[at].toFixed(2)} ms, a pipeline ${through[at].toFixed(2)} ms: ${added.toFixed(3)} ms a stage`,
    );
  }
  engine.kill();
  agent.destroy();
}

if (positionals[0] === CHILD) serve(Number(values['engine-ms']));
else await measure();
