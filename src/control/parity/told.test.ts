import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import { toldBy } from './told.ts';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** What an engine of that name tells that answers these pages, and 404 to all else. */
async function told(engine: string, pages: Record<string, object | string>): Promise<unknown> {
  server = createServer(({ url }, response) => {
    const page = pages[url!];
    response.setHeader('server', 'uvicorn').writeHead(page === undefined ? 404 : page === 'BUSY' ? 503 : 200);
    response.end(typeof page === 'string' ? page : JSON.stringify(page));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const endpoint = engine === 'triton' ? root : `${root}/v1`;
  const settings = settingsSchema.parse({ backends: { b: { engine, model: 'm', endpoints: [endpoint] } } });
  const found = await toldBy(
    { backend: 'b', settings: settings.backends['b']!, endpoint },
    new VirtualTime(),
  );
  return found === undefined ? undefined : JSON.parse(found);
}

test('an engine is known by its version, its model and the settings of its cache, and not by what changes by itself', async () => {
  const cache = (blocks: number) =>
    `# HELP x\nvllm:cache_config_info{block_size="16",cache_dtype="fp8",num_gpu_blocks="${blocks}"} 1.0\nvllm:x 3\n`;
  const pages = (created: number, blocks: number) => ({
    '/version': { version: '0.11.0' },
    '/v1/models': { data: [{ id: 'm', created, root: '/models/m', max_model_len: 8192 }, { id: 'other' }] },
    '/metrics': cache(blocks),
  });
  const first = await told('vllm', pages(1, 100));
  expect(first).toEqual({
    server: 'uvicorn',
    '/version': { version: '0.11.0' },
    model: { id: 'm', root: '/models/m', max_model_len: 8192 },
    'vllm:cache_config_info': { block_size: '16', cache_dtype: 'fp8' },
  });
  expect(await told('vllm', pages(2, 101))).toEqual(first);
});

test('a server of tensors is known by itself, its model and how that is batched', async () => {
  const pages = {
    '/v2': { name: 'triton', version: '2.60.0' },
    '/v2/models/m': { name: 'm', versions: ['3'], platform: 'onnxruntime_onnx' },
    '/v2/models/m/config': { dynamic_batching: { preferred_batch_size: [8] } },
  };
  expect(await told('triton', pages)).toEqual({ server: 'uvicorn', ...pages });
});

test('an engine that tells only a part of it now tells nothing', async () => {
  expect(await told('vllm', { '/version': { version: '1' }, '/v1/models': 'BUSY' })).toBeUndefined();
});

test('what cannot be reached tells nothing, and is not another engine for that', async () => {
  const settings = settingsSchema.parse({
    backends: { b: { engine: 'vllm', model: 'm', endpoints: ['http://127.0.0.1:1/v1'] } },
  });
  server = createServer();
  const place = { backend: 'b', settings: settings.backends['b']!, endpoint: 'http://127.0.0.1:1/v1' };
  expect(await toldBy(place, new VirtualTime())).toBeUndefined();
});
