import { describe, expect, it } from 'vitest';
import { shared } from '../../engines/provisioned.ts';
import { startArmature } from '../../upstream/armature.ts';
import { eventually } from '../../upstream/waiting.ts';
import { realModels } from './real-models.ts';

/** Local backends as a user has them: hosts of the shipped command behind a gateway. */

const LOADED_WITHIN_MS = 90_000;

const models = await realModels();
if (typeof models === 'string' && process.env['CI']) throw new Error(models);

describe('local backends behind the gateway', () => {
  const world = shared([], async (stack) => {
    if (typeof models === 'string') return undefined;
    const { chat, embedding, classifier } = models;
    const armature = stack.use(
      await startArmature({
        backends: {
          chat: { engine: 'local', model: 'chat-model', host: { threads: 1, contextTokensMax: 512 } },
          embeddings: { engine: 'local', model: 'embedding-model', host: { threads: 1 } },
          'file-type': { engine: 'local', model: 'file-type', host: { threads: 1 } },
        },
        routes: {
          chat: { targets: [{ backend: 'chat' }], ladder: [{ answer: 'Later.' }] },
          embeddings: { targets: [{ backend: 'embeddings' }] },
          kinds: { targets: [{ backend: 'file-type' }] },
        },
        models: {
          'chat-model': { format: 'gguf', from: [`file:${chat}`] },
          'embedding-model': {
            format: 'onnx',
            from: [`file:${embedding.model}`],
            tokenizer: { from: [`file:${embedding.tokenizer}`] },
          },
          'file-type': { format: 'onnx', from: [`file:${classifier}`] },
        },
      }),
    );
    await eventually(
      'every model is served',
      async () => {
        const { backends } = (await armature.admin('/api/v1/status')).json();
        return backends.every(({ host }: { host?: { state: string } }) => host?.state === 'serving');
      },
      LOADED_WITHIN_MS,
    );
    return armature;
  });
  const armatureOr = (context: { skip(reason: string): void }) => {
    const armature = world();
    if (!armature) context.skip(String(models));
    return armature!;
  };

  it('answer a chat, streamed and not', async (context) => {
    const armature = armatureOr(context);
    const whole = await armature.chat({ max_tokens: 8 }, [], 60_000);
    expect(whole.status).toBe(200);
    expect(whole.header('x-armature-backend')).toBe('chat');
    expect(whole.header('x-armature-degraded')).toBeUndefined();
    expect(whole.json().usage.completion_tokens).toBeGreaterThan(0);
    const streamed = await armature.chat({ max_tokens: 8, stream: true }, [], 60_000);
    expect(streamed.done).toBe(true);
    expect(streamed.text).not.toBe('');
  });

  it('make embeddings', async (context) => {
    const armature = armatureOr(context);
    const body = { model: 'embeddings', input: ['one', 'two'] };
    const answer = await armature.ask({ path: '/v1/embeddings', body }, 30_000);
    expect(answer.status).toBe(200);
    expect(answer.json().data.map(({ embedding }: { embedding: number[] }) => embedding.length)).toEqual([
      384, 384,
    ]);
  });

  it('take tensors', async (context) => {
    const armature = armatureOr(context);
    const metadata = await armature.ask({ method: 'GET', path: '/v2/models/kinds' });
    expect(metadata.json()).toMatchObject({ inputs: [{ name: 'bytes', datatype: 'INT32' }] });
    const data = Array.from({ length: 2048 }, () => 256);
    const body = { inputs: [{ name: 'bytes', datatype: 'INT32', shape: [1, 2048], data }] };
    const answer = await armature.ask({ path: '/v2/models/kinds/infer', body }, 30_000);
    expect(answer.status).toBe(200);
    expect(answer.json().outputs[0].shape).toEqual([1, 214]);
    const bad = await armature.ask({ path: '/v2/models/kinds/infer', body: { inputs: [] } });
    expect([bad.status, typeof bad.json().error]).toEqual([400, 'string']);
  });

  it('keep their own words for what they refuse', async (context) => {
    const armature = armatureOr(context);
    const answer = await armature.chat({ max_tokens: 4096 });
    expect(answer.status).toBe(400);
    expect(answer.json().error).toMatchObject({
      code: 'context_length_exceeded',
      type: 'invalid_request_error',
    });
  });

  it('a caller that leaves stops its generation', async (context) => {
    const armature = armatureOr(context);
    const { backends } = (await armature.admin('/api/v1/status')).json();
    const { endpoint } = backends.find(({ backend }: { backend: string }) => backend === 'chat').endpoints[0];
    const running = async () => {
      const text = await (await fetch(new URL('/metrics', endpoint))).text();
      return Number(/^armature_host_running (\d+)$/m.exec(text)![1]);
    };
    const leaving = new AbortController();
    const asked = fetch(`http://127.0.0.1:${armature.gatewayPort}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'chat',
        messages: [{ role: 'user', content: 'word '.repeat(300) }],
      }),
      signal: leaving.signal,
    }).catch(() => undefined);
    await eventually('it is being generated', async () => (await running()) === 1, 20_000);
    leaving.abort();
    await asked;
    await eventually('it has stopped', async () => (await running()) === 0, 20_000);
    await armature.idle();
  });

  it('a host that dies is started anew, and who comes meanwhile waits for it', async (context) => {
    const armature = armatureOr(context);
    armature.kill('host-chat');
    const meanwhile = await armature.chat({ max_tokens: 4 }, [], 60_000);
    expect(meanwhile.status).toBe(200);
    expect(meanwhile.header('x-armature-degraded')).toBe(undefined);
    expect(meanwhile.header('x-armature-backend')).toBe('chat');
    await eventually(
      'the model answers again',
      async () =>
        (await armature.chat({ max_tokens: 4 }, [], 60_000)).header('x-armature-backend') === 'chat',
      LOADED_WITHIN_MS,
    );
  });
});
