import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, test } from 'vitest';
import { text, u32, u64 } from '../../../test/registry/gguf-bytes.ts';
import { openTokenizer } from '../preprocessing/tokenizer.ts';
import { isGguf, readGguf } from './gguf.ts';

const folder = mkdtempSync(join(tmpdir(), 'armature-gguf-'));
afterAll(() => rmSync(folder, { recursive: true }));

const small = join(import.meta.dirname, '../../../test/context/reference/small/bytes/tokenizer.json');
const { model, added_tokens: added } = JSON.parse(readFileSync(small, 'utf8'));
const tokens = Object.keys(model.vocab).sort((a, b) => model.vocab[a] - model.vocab[b]);
const special = new Set(added.map(({ content }: { content: string }) => content));

function told(value: unknown): Buffer {
  if (typeof value === 'string') return Buffer.concat([u32(8), text(value)]);
  if (typeof value === 'number') return Buffer.concat([u32(4), u32(value)]);
  if (typeof value === 'boolean') return Buffer.concat([u32(7), Buffer.from([Number(value)])]);
  const list = value as (string | number)[];
  const isText = typeof list[0] === 'string';
  return Buffer.concat([
    u32(9),
    u32(isText ? 8 : 4),
    u64(list.length),
    ...list.map((each) => (isText ? text(each as string) : u32(each as number))),
  ]);
}

function header(more: Record<string, unknown> = {}): Buffer {
  const said = {
    'general.architecture': 'llama',
    'llama.context_length': 2048,
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.pre': 'smollm',
    'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.token_type': tokens.map((token) => (special.has(token) ? 3 : 1)),
    'tokenizer.ggml.merges': model.merges.map((pair: string[]) => pair.join(' ')),
    'tokenizer.ggml.bos_token_id': 1,
    'tokenizer.ggml.eos_token_id': 2,
    'tokenizer.chat_template': '{{ messages }}',
    ...more,
  };
  const entries = Object.entries(said);
  const parts = entries.map(([key, value]) => Buffer.concat([text(key), told(value)]));
  return Buffer.concat([Buffer.from('GGUF'), u32(3), u64(0), u64(entries.length), ...parts]);
}

function write(bytes: Buffer): string {
  const path = join(folder, 'model.gguf');
  writeFileSync(path, bytes);
  return path;
}

it('tells window, template, special tokens and the vocabulary, token by token as its tokenizer.json', () => {
  const path = write(header());
  expect(isGguf(path)).toBe(true);
  const { tokenizer, ...said } = readGguf(path);
  expect(said).toEqual({
    contextTokens: 2048,
    template: '{{ messages }}',
    bos: '<|im_start|>',
    eos: '<|im_end|>',
    addBos: false,
  });
  expect(typeof tokenizer).toBe('object');
  const [ours, theirs] = [openTokenizer(path), openTokenizer(small)];
  for (const said of ['Hello  world 1234', '<|im_start|>user\nⅧ \ufeff 👩‍👩‍👧<|im_end|>', '', '\u0085\t\t']) {
    expect(ours.encode(said, false, undefined)).toEqual(theirs.encode(said, false, undefined));
  }
});

test.each([
  [{ 'tokenizer.ggml.model': 'llama' }, /kind 'llama' is not read/],
  [{ 'tokenizer.ggml.pre': 'of-tomorrow' }, /'of-tomorrow'/],
  [{ 'tokenizer.ggml.merges': 'none' }, /no merges/],
])('says why a vocabulary is not read: %j', (more, why) => {
  expect(readGguf(write(header(more))).tokenizer).toMatch(why);
});

it('says in words what is wrong with a file, wherever it ends and whatever is in it', () => {
  const whole = header();
  for (let at = 0; at < 200; at++) {
    const path = write(whole.subarray(0, Math.floor((whole.length * at) / 200)));
    expect(() => readGguf(path)).toThrow(/^it is no GGUF file$|header/);
  }
  for (let at = 24; at < 400; at++) {
    const broken = Buffer.from(whole);
    broken[at] = 0xff;
    try {
      readGguf(write(broken));
    } catch (error) {
      expect((error as Error).message).toMatch(/header/);
    }
  }
  expect(() => readGguf(write(Buffer.from('{"version":"1.0"}')))).toThrow('it is no GGUF file');
});
