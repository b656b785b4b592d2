import { describe, expect, it } from 'vitest';
import { startMlserver } from '../engines/engines.ts';
import { shared } from '../engines/provisioned.ts';
import { backendOf, startArmature } from '../upstream/armature.ts';

describe('MLServer behind Armature', () => {
  const world = shared(['mlserver'], async (stack) => {
    const engine = stack.use(await startMlserver());
    const armature = stack.use(
      await startArmature({
        backends: { m: backendOf(engine.root, { engine: 'mlserver', model: 'sum' }) },
        routes: { adder: { targets: [{ backend: 'm' }] } },
      }),
    );
    return armature;
  });
  const x = { name: 'x', datatype: 'FP32', shape: [3], data: [1, 2, 3.5] };

  it('infers in JSON', async () => {
    const answer = await world().ask({ path: '/v2/models/adder/infer', body: { id: '9', inputs: [x] } });
    expect(answer.status).toBe(200);
    expect(answer.json().outputs[0].data).toEqual([6.5]);
    expect(answer.json().id).toBe('9');
    expect(answer.header('x-armature-backend')).toBe('m');
  });

  it('infers at a pinned version', async () => {
    const answer = await world().ask({ path: '/v2/models/adder/versions/v1/infer', body: { inputs: [x] } });
    expect(answer.json().model_version).toBe('v1');
  });

  it('describes its model, and says when it is ready', async () => {
    const metadata = await world().ask({ method: 'GET', path: '/v2/models/adder' });
    expect(metadata.json().inputs).toEqual([{ name: 'x', datatype: 'FP32', shape: [-1] }]);
    for (const path of ['/v2/health/live', '/v2/health/ready', '/v2/models/adder/ready']) {
      expect((await world().ask({ method: 'GET', path })).status, path).toBe(200);
    }
  });

  it('refuses binary tensors with 422, and its reason is kept', async () => {
    const json = {
      inputs: [{ name: 'x', datatype: 'FP32', shape: [1], parameters: { binary_data_size: 4 } }],
    };
    const header = Buffer.from(JSON.stringify(json));
    const answer = await world().ask({
      path: '/v2/models/adder/infer',
      body: Buffer.concat([header, Buffer.alloc(4)]),
      headers: [
        ['Content-Type', 'application/octet-stream'],
        ['Inference-Header-Content-Length', String(header.length)],
      ],
    });
    expect(answer.status).toBe(422);
    expect(answer.json().error).toMatch(/valid dictionary/);
    expect(await world().metric('armature_breaker_state', { backend: 'm' })).toBe(0);
  });
});
