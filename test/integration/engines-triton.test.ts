import { describe, expect, it } from 'vitest';
import { startTriton } from '../engines/engines.ts';
import { shared } from '../engines/provisioned.ts';
import { backendOf, startArmature } from '../upstream/armature.ts';
import type { Answer } from '../upstream/client.ts';
import type { Json } from '../upstream/sse.ts';

interface Tensor {
  name: string;
  datatype: string;
  shape: number[];
  bytes: Buffer;
}

/** The binary tensor extension: JSON, then the tensors one behind the other. */
function binaryBody(tensors: Tensor[], more: Json = {}): { json: Buffer; body: Buffer } {
  const inputs = tensors.map(({ name, datatype, shape, bytes }) => ({
    name,
    datatype,
    shape,
    parameters: { binary_data_size: bytes.length },
  }));
  const json = Buffer.from(JSON.stringify({ inputs, ...more }));
  return { json, body: Buffer.concat([json, ...tensors.map((tensor) => tensor.bytes)]) };
}

/** A binary answer taken apart by its own header, as a client does. */
function partsOf(answer: Answer): { json: Json; outputs: Record<string, Buffer> } {
  const jsonBytes = Number(answer.header('inference-header-content-length'));
  expect(jsonBytes).toBeGreaterThan(0);
  const json = JSON.parse(answer.content.subarray(0, jsonBytes).toString());
  const outputs: Record<string, Buffer> = {};
  let at = jsonBytes;
  for (const output of json.outputs) {
    outputs[output.name] = answer.content.subarray(at, (at += output.parameters.binary_data_size));
  }
  expect(at).toBe(answer.content.length);
  return { json, outputs };
}

const bytesOf = (values: Float32Array | Uint16Array) =>
  Buffer.from(values.buffer, values.byteOffset, values.byteLength);
const f32 = (values: number[], shape = [1, values.length]): Tensor => ({
  name: 'f32',
  datatype: 'FP32',
  shape,
  bytes: bytesOf(new Float32Array(values)),
});

/** BYTES: each element with its length before it, 4 bytes little-endian. */
function packed(elements: (string | Buffer)[]): Buffer {
  return Buffer.concat(
    elements.flatMap((element) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(element));
      return [length, Buffer.from(element)];
    }),
  );
}

describe('the Triton server behind Armature', () => {
  const world = shared(['triton'], async (stack) => {
    const engine = stack.use(await startTriton());
    const backend = (model: string) => backendOf(engine.root, { engine: 'triton', model });
    const armature = stack.use(
      await startArmature({
        backends: { t: backend('tensors'), s: backend('running_sum') },
        routes: {
          echo: { targets: [{ backend: 't' }] },
          sums: { targets: [{ backend: 's' }] },
        },
      }),
    );
    const get = (path: string) => armature.ask({ method: 'GET', path });
    const infer = (body: unknown, route = 'echo') =>
      armature.ask({ path: `/v2/models/${route}/infer`, body });
    const inferBinary = (tensors: Tensor[], more: Json = {}) => {
      const { json, body } = binaryBody(tensors, more);
      return armature.ask({
        path: '/v2/models/echo/infer',
        body,
        headers: [
          ['Content-Type', 'application/octet-stream'],
          ['Inference-Header-Content-Length', String(json.length)],
        ],
      });
    };
    return { armature, get, infer, inferBinary };
  });
  const binaryOut = { parameters: { binary_data_output: true } };

  it('says that server and model live and are ready, and describes both', async () => {
    const { get } = world();
    const paths = [
      '/v2/health/live',
      '/v2/health/ready',
      '/v2/models/echo/ready',
      '/v2/models/echo/versions/1/ready',
    ];
    for (const path of paths) expect((await get(path)).status, path).toBe(200);
    expect((await get('/v2')).json().extensions).toContain('binary_tensor_data');
    const metadata = (await get('/v2/models/echo')).json();
    expect(metadata.inputs).toContainEqual({ name: 'fp16', datatype: 'FP16', shape: [-1] });
    expect(metadata.versions).toEqual(['1', '2']);
    expect((await get('/v2/models/echo/versions/1')).json().outputs).toHaveLength(3);
    expect((await get('/v2/models/echo/versions/9/ready')).status).toBeGreaterThanOrEqual(400);
  });

  it('infers in JSON, echoes the id, and pins a version', async () => {
    const { infer, get } = world();
    const inputs = [{ name: 'f32', datatype: 'FP32', shape: [1, 2], data: [1.5, -2] }];
    const newest = (await infer({ id: 'mine-7', inputs })).json();
    expect(newest.id).toBe('mine-7');
    expect(newest.outputs[0].data).toEqual([3, -4]);
    const pinned = await infer({ inputs }, 'echo/versions/1');
    expect(pinned.json().model_version).toBe('1');
    expect(pinned.json().outputs[0].data).toEqual([1.5, -2]);
    expect((await get('/v2/models/echo/versions/2/ready')).status).toBe(200);
  });

  it('passes raw tensors both ways', async () => {
    const { inferBinary } = world();
    const answer = await inferBinary([f32([1, 2, 3, 4], [2, 2])], { id: 'b-1', ...binaryOut });
    expect(answer.status).toBe(200);
    const { json, outputs } = partsOf(answer);
    expect(json.id).toBe('b-1');
    expect(outputs['f32_out']).toEqual(bytesOf(new Float32Array([2, 4, 6, 8])));
  });

  it('passes FP16, which has no sound JSON form, as it is', async () => {
    const { inferBinary } = world();
    const halves = new Uint16Array([0x3c00, 0xc000, 0x0000]); // 1, -2, 0
    const tensor = { name: 'fp16', datatype: 'FP16', shape: [3], bytes: bytesOf(halves) };
    const { outputs } = partsOf(await inferBinary([tensor], binaryOut));
    expect(outputs['fp16_out']).toEqual(bytesOf(new Uint16Array([0x4000, 0xc400, 0x0000])));
  });

  it('passes BYTES with anything in them, in JSON and raw, several tensors at once', async () => {
    const { infer, inferBinary } = world();
    const inputs = [{ name: 'text', datatype: 'BYTES', shape: [2], data: ['hé', '\u0001"'] }];
    expect((await infer({ inputs })).json().outputs[0].data).toEqual(['hé', '\u0001"']);
    const bytes = packed(['', 'hé 😀', Buffer.from([0, 255, 10]), 'x'.repeat(70_000)]);
    const text = { name: 'text', datatype: 'BYTES', shape: [4], bytes };
    const { outputs } = partsOf(await inferBinary([f32([7]), text], binaryOut));
    expect(outputs['text_out']).toEqual(bytes);
    expect(outputs['f32_out']).toEqual(bytesOf(new Float32Array([14])));
  });

  it('mixes raw input with JSON output', async () => {
    const { inferBinary } = world();
    const answer = await inferBinary([f32([1, 2])], { outputs: [{ name: 'f32_out' }] });
    expect(answer.json().outputs[0].data).toEqual([2, 4]);
  });

  it('passes a tensor of 4 MiB', async () => {
    const { inferBinary } = world();
    const values = Array.from({ length: 2 ** 20 }, (_, index) => index % 1000);
    const { outputs } = partsOf(await inferBinary([f32(values)], binaryOut));
    const wanted = bytesOf(new Float32Array(values.map((value) => value * 2)));
    expect(wanted.equals(outputs['f32_out']!)).toBe(true);
  });

  it("keeps the engine's own errors and their words", async () => {
    const { infer } = world();
    const unknown = await infer({ inputs: [{ name: 'zz', datatype: 'FP32', shape: [1, 1], data: [1] }] });
    expect([unknown.status, unknown.json().error]).toEqual([
      400,
      expect.stringContaining("unexpected inference input 'zz'"),
    ]);
    const none = await infer({ inputs: [] });
    expect([none.status, none.json().error]).toEqual([400, 'no tensor to give back']);
    const missing = await infer({ inputs: [] }, 'nowhere');
    expect([missing.status, typeof missing.json().error]).toEqual([404, 'string']);
  });

  it('blames nobody for the 500 that it gives of bad input', async () => {
    const { infer, armature } = world();
    const bad = [
      '{"inputs":[',
      { inputs: 'x' },
      { inputs: [{ name: 'f32', datatype: 'FP32', shape: [1, 3], data: [1] }] },
    ];
    for (let i = 0; i < 30; i++) {
      const answer = await infer(bad[i % bad.length]);
      expect([answer.status, typeof answer.json().error]).toEqual([400, 'string']);
    }
    expect(await armature.metric('armature_breaker_state')).toBe(0);
    expect(await armature.metric('armature_retries_total')).toBe(0);
    const inputs = [{ name: 'f32', datatype: 'FP32', shape: [1, 1], data: [1] }];
    expect((await infer({ inputs })).status).toBe(200);
  });

  it('keeps the requests of a sequence in order', async () => {
    const { infer } = world();
    const sums: number[] = [];
    for (const [x, parameters] of [
      [4, { sequence_id: 9, sequence_start: true }],
      [5, { sequence_id: 9 }],
      [6, { sequence_id: 9, sequence_end: true }],
    ] as const) {
      const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 1], data: [x] }];
      sums.push((await infer({ parameters, inputs }, 'sums')).json().outputs[0].data[0]);
    }
    expect(sums).toEqual([4, 9, 15]);
  });
});
