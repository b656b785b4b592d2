import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { python, startTriton } from '../engines/engines.ts';
import { shared } from '../engines/provisioned.ts';
import { backendOf, startArmature } from '../upstream/armature.ts';
import { letGo, type Script, startEngine } from '../upstream/engine.ts';
import { answerByPath, cutStream, endless, failWith } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';

/** Runs a client's script and gives what it saw. */
async function run(script: string, ...args: string[]): Promise<Json> {
  const {
    command,
    args: all,
    env,
  } = python([join(import.meta.dirname, '../engines/clients', script), ...args]);
  const { stdout } = await promisify(execFile)(command, all, {
    env: { ...process.env, ...env },
    timeout: 60_000,
  });
  return JSON.parse(stdout);
}

describe("Python's openai", () => {
  const world = shared(['python-clients'], async (stack) => {
    const scripts: Record<string, Script> = {
      chat: answerByPath,
      failing: failWith(500),
      bad: failWith(422, [], { error: { message: 'no', type: 'x', param: null, code: 'too_odd' } }),
      cut: cutStream(['one ', 'two '], 'fin'),
      endless: endless(),
    };
    const engines = await Promise.all(
      Object.entries(scripts).map(
        async ([name, script]) => [name, stack.use(await startEngine(script))] as const,
      ),
    );
    const armature = stack.use(
      await startArmature({
        backends: Object.fromEntries(engines.map(([name, engine]) => [name, backendOf(engine)])),
        routes: Object.fromEntries(engines.map(([name]) => [name, { targets: [{ backend: name }] }])),
        tenants: { web: {} },
      }),
    );
    return { armature, engines: Object.fromEntries(engines) };
  });

  it('works unchanged', async () => {
    const { armature, engines } = world();
    const key = await armature.key('web');
    const seen = await run('openai_client.py', `http://127.0.0.1:${armature.gatewayPort}/v1`, key);
    expect(seen).toEqual({
      chat: 'Hello there',
      usage: 7,
      stream: 'Hello there',
      stream_usage: [7],
      embedding: [0.25, -0.5],
      completion: 'Hello',
      models: expect.arrayContaining(['chat', 'failing', 'bad', 'cut', 'endless']),
      errors: {
        unknown: ['NotFoundError', 404, 'unknown_route'],
        stranger: ['AuthenticationError', 401, 'unauthorized'],
        failing: ['InternalServerError', 502, 'backend_error'],
        bad: ['UnprocessableEntityError', 422, 'too_odd'],
        cut: ['APIError', null, expect.any(String)],
      },
      left: true,
    });
    await letGo(engines['endless']!.posts[0]!);
    await armature.idle();
  });
});

describe('tritonclient', () => {
  const world = shared(['python-clients', 'triton'], async (stack) => {
    const engine = stack.use(await startTriton());
    const backend = (model: string) => backendOf(engine.root, { engine: 'triton', model });
    return stack.use(
      await startArmature({
        backends: { t: backend('tensors'), s: backend('running_sum') },
        routes: { echo: { targets: [{ backend: 't' }] }, sums: { targets: [{ backend: 's' }] } },
      }),
    );
  });

  it('works unchanged', async () => {
    const seen = await run('triton_client.py', `127.0.0.1:${world().gatewayPort}`);
    expect(seen).toEqual({
      live: true,
      ready: true,
      model_ready: true,
      unknown_ready: false,
      extensions: expect.arrayContaining(['binary_tensor_data']),
      metadata: { name: 'f32', datatype: 'FP32', shape: [-1, -1] },
      versions: ['1', '2'],
      binary: ['r-binary', [[3, -4]]],
      json: ['r-json', [[3, -4]]],
      pinned: [[1.5, -2]],
      fp16: [2, -4, 1],
      bytes: ['68c3a9', '', '00ff'],
      big: true,
      gzip: [[3, -4]],
      deflate: [[3, -4]],
      async: [0, 3, 6, 9],
      sums: [4, 9, 15],
      errors: {
        unknown: ['404', expect.any(String)],
        // Said aloud: the path reads what it sends on, and reads no compressed bodies.
        compressed: ['400', expect.stringContaining('compressed')],
        input: ['400', expect.stringContaining('unexpected inference input')],
      },
    });
  });
});
