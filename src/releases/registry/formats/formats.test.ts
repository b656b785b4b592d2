import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { text, u32, u64 } from '../../../../test/registry/gguf-bytes.ts';
import {
  field,
  gguf,
  onnx,
  pickle,
  safetensors,
  savedModel,
  torchSave,
  torchScript,
  zip,
} from '../../../../test/registry/model-files.ts';
import { BrokenFile, inspect } from './index.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-formats-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
/** The name says nothing: what a file is shows in its content. */
function look(content: Buffer | string) {
  const path = join(folder, `file-${files++}`);
  writeFileSync(path, content);
  return inspect(path);
}

describe('weights', () => {
  test('safetensors: numbers of each kind', async () => {
    expect(await look(safetensors())).toMatchObject({ format: 'safetensors', numbers: { fp32: 4 } });
    const mixed = safetensors(
      {
        __metadata__: { format: 'pt' },
        a: { dtype: 'BF16', shape: [3], data_offsets: [0, 6] },
        b: { dtype: 'F8_E4M3', shape: [2, 1], data_offsets: [6, 8] },
      },
      Buffer.alloc(8),
    );
    expect(await look(mixed)).toMatchObject({
      numbers: { bf16: 3, 'fp8-e4m3': 2 },
      told: { format: 'pt' },
    });
  });

  test.each([
    ['cut off', safetensors(undefined, Buffer.alloc(10)), 'ends too early'],
    ['with something behind it', safetensors(undefined, Buffer.alloc(17)), 'stand behind its data'],
    ['with a hole', safetensors({ w: { dtype: 'F32', shape: [2], data_offsets: [8, 16] } }), 'leave a hole'],
    [
      'of another shape',
      safetensors({ w: { dtype: 'F32', shape: [5], data_offsets: [0, 16] } }),
      'its shape needs 20',
    ],
  ])('safetensors that are %s are broken', async (_how, content, message) => {
    await expect(look(content)).rejects.toThrow(message);
    await expect(look(content)).rejects.toBeInstanceOf(BrokenFile);
  });

  test('a header of 640 bytes begins like a pickle, and is none', async () => {
    const made = (padding: number) =>
      safetensors({
        __metadata__: { padding: 'x'.repeat(padding) },
        w: { dtype: 'F32', shape: [2, 2], data_offsets: [0, 16] },
      });
    const bytes = made(640 - (made(0).length - 8 - 16));
    expect([...bytes.subarray(0, 2)]).toEqual([0x80, 2]);
    expect((await look(bytes)).format).toBe('safetensors');
  });

  test('gguf: what it calls itself, its template and its tokenizer', async () => {
    const values = {
      'general.architecture': 'llama',
      'general.file_type': 7,
      'llama.context_length': 2048,
      'tokenizer.chat_template': '{{ messages }}',
      'tokenizer.ggml.model': 'gpt2',
    };
    const found = await look(gguf(values));
    expect(found).toMatchObject({
      format: 'gguf',
      precision: 'q8_0',
      numbers: { q8_0: 32 },
      told: { 'general.architecture': 'llama', 'llama.context_length': 2048 },
      template: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const mixed = gguf({ 'general.file_type': 15 }, 144, { type: 12, elements: 256 });
    expect(await look(mixed)).toMatchObject({ precision: 'q4_k_m', numbers: { q4_k: 256 } });
    // Quantised anew, it still calls itself what it was before.
    expect((await look(gguf({ 'general.file_type': 3 }))).precision).toBeUndefined();
    const other = await look(gguf({ ...values, 'tokenizer.ggml.model': 'llama' }));
    expect(other.tokenizer).not.toBe(found.tokenizer);
    expect(other.template).toBe(found.template);
    await expect(look(gguf(values, 33))).rejects.toThrow('ends too early');
    await expect(look(gguf(values).subarray(0, 90))).rejects.toBeInstanceOf(BrokenFile);
    expect((await look(gguf({ 'split.no': 1, 'split.count': 3 }))).split).toEqual({ part: 1, of: 3 });
    expect((await look(gguf({ 'split.no': 0, 'split.count': 1 }))).split).toBeUndefined();
  });

  test('gguf: lists without a measure are not read into memory', async () => {
    const head = (list: Buffer) =>
      Buffer.concat([Buffer.from('GGUF'), u32(3), u64(0), u64(1), text('a'), u32(9), list]);
    const nested = Buffer.concat(Array.from({ length: 100_000 }, () => Buffer.concat([u32(9), u64(1)])));
    await expect(look(head(nested))).rejects.toThrow('lists in lists');
    await expect(look(head(Buffer.concat([u32(0), u64(200_000_000)])))).rejects.toThrow('lists more than');
  });

  test('onnx: inputs, outputs, numbers, and weights that lie elsewhere', async () => {
    expect(await look(onnx())).toMatchObject({
      format: 'onnx',
      numbers: { fp32: 6 },
      inputs: ['pixels'],
      outputs: ['scores'],
      told: { irVersion: 8, producer: 'a producer', 'opset:ai.onnx': 17 },
    });
    expect(await look(onnx({ type: 3, external: 'weights.bin' }))).toMatchObject({
      numbers: { int8: 6 },
      external: ['weights.bin'],
    });
    expect((await look(onnx().subarray(0, 40))).format).not.toBe('onnx');
  });

  test('SavedModel, SentencePiece, texts and tables', async () => {
    expect(await look(savedModel())).toEqual({ format: 'savedmodel', told: { graphs: 1 } });
    expect((await look(savedModel('VarHandleOp'))).needs).toEqual(['variables/variables.index']);
    const piece = Buffer.concat([field(1, '<unk>'), field(3, 2)]);
    expect(await look(Buffer.concat([field(1, piece), field(1, piece)]))).toMatchObject({
      format: 'sentencepiece',
      told: { pieces: 2 },
    });
    expect((await look('{"model": {"vocab": {}}}')).tokenizer).toMatch(/^[0-9a-f]{64}$/);
    expect((await look('{"chat_template": "x"}')).template).toMatch(/^[0-9a-f]{64}$/);
    const index = {
      weight_map: { a: 'model-1.safetensors', b: 'model-2.safetensors', c: 'model-1.safetensors' },
    };
    expect((await look(JSON.stringify(index))).needs).toEqual(['model-1.safetensors', 'model-2.safetensors']);
    expect((await look('# A model card\n')).format).toBe('text');
    expect((await look(Buffer.from([0xff, 0xfe, 0, 1]))).format).toBe('bytes');
  });
});

describe('pickles, by what they are and not by their name', () => {
  test('of protocol 2, of a `torch.save`, and of old protocols that have no head', async () => {
    expect(await look(pickle(['os', 'system']))).toMatchObject({
      format: 'pickle',
      danger: expect.stringContaining('os.system'),
    });
    expect(await look(torchSave())).toMatchObject({
      format: 'pickle',
      danger: expect.stringContaining('os.system'),
    });
    expect(await look("cos\nsystem\n(S'echo'\ntR.")).toMatchObject({
      format: 'pickle',
      danger: expect.stringContaining('os.system'),
    });
    expect((await look(pickle())).danger).toBeDefined();
    expect((await look(Buffer.from([0x80, 4, 0x93]))).format).toBe('pickle');
  });

  test('TorchScript is none, unless its pickles look up what does not belong there', async () => {
    const found = await look(torchScript());
    expect(found.format).toBe('torchscript');
    expect(found.danger).toBeUndefined();
    expect((await look(torchScript(pickle(['builtins', 'eval'])))).danger).toContain('builtins.eval');
    // A name that is only put together while it is loaded.
    const hidden = Buffer.concat([
      Buffer.from([0x80, 4]),
      Buffer.from('\x8c\x02os\x8c\x06system\x93.', 'latin1'),
    ]);
    expect((await look(torchScript(hidden))).danger).toContain('only loading');
  });

  test('an archive of something else is nothing that is known', async () => {
    expect((await look(zip({ 'a.npy': 'x' }))).format).toBe('bytes');
    await expect(look(torchSave().subarray(0, 60))).rejects.toThrow('cannot be read as an archive');
  });
});

test('says of any file what it is, or in words why it is broken', async () => {
  const good = [
    safetensors(),
    gguf({ 'general.file_type': 15 }),
    onnx(),
    savedModel(),
    torchScript(),
    pickle(['a', 'b']),
  ];
  const damaged = fc
    .tuple(
      fc.constantFrom(...good),
      fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 4 }),
      fc.nat(400),
    )
    .map(([bytes, changes, length]) => {
      const copy = Buffer.from(bytes);
      for (const [at, byte] of changes) if (at < copy.length) copy[at] = byte;
      return copy.subarray(0, Math.max(1, length));
    });
  await fc.assert(
    fc.asyncProperty(fc.oneof(damaged, fc.uint8Array({ minLength: 1, maxLength: 200 })), async (bytes) => {
      const found = await look(Buffer.from(bytes)).catch((error: Error) => error);
      if (found instanceof Error) expect(found).toBeInstanceOf(BrokenFile);
      else expect(found.format).toBeTypeOf('string');
    }),
    { numRuns: 500 },
  );
});
