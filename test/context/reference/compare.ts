import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '../../../src/kernel/clock.ts';
import { boundOfChat } from '../../../src/pipelines/context/bound.ts';
import { Profiles } from '../../../src/pipelines/context/profile.ts';
import { boundOf, promptOf } from '../../../src/pipelines/context/prompt.ts';
import { type OpenTokenizer, openTokenizer } from '../../../src/pipelines/preprocessing/tokenizer.ts';

/** A chat with the tokens of its prompt, as `make.py` wrote it. */
interface Reference {
  tokenizer: string;
  messages: Record<string, unknown>[];
  tools?: unknown[];
  count: number;
  /** The beginning of the SHA-256 of its ids. */
  ids: string;
}

export interface Compared {
  chats: number;
  /** Those whose tokens are others, by tokenizer. */
  different: Record<string, number>;
  first: string | undefined;
  /** Bounds by bytes that are below the count, with the template or without. */
  below: number;
}

/** Makes and counts the prompts of `FOLDER/chats.jsonl` as the gateway does, and compares token by token. */
export async function compare(folder: string): Promise<Compared> {
  const profiles = new Profiles(undefined, systemClock);
  const tokenizers = new Map<string, OpenTokenizer>();
  const compared: Compared = { chats: 0, different: {}, first: undefined, below: 0 };
  for await (const line of createInterface({ input: createReadStream(join(folder, 'chats.jsonl')) })) {
    const { tokenizer: name, messages, tools, count, ids: expected } = JSON.parse(line) as Reference;
    const gguf = join(folder, name, 'model.gguf');
    const file = existsSync(gguf) ? gguf : join(folder, name, 'tokenizer.json');
    const tokenizer = tokenizers.get(name) ?? openTokenizer(file);
    tokenizers.set(name, tokenizer);
    const profile = profiles.of(settingsOf(file));
    const rest = { tools, chat_template_kwargs: { date_string: '26 Jul 2024' } };
    const prompt = promptOf(profile, messages, rest);
    const ids = tokenizer.encode(prompt?.text ?? '', false, undefined);
    compared.chats++;
    if (boundOf(profile, messages, rest).tokens < count) compared.below++;
    if (boundOfChat(messages, rest) < count) compared.below++;
    if (prompt?.exact && ids.length === count && digestOf(ids) === expected) continue;
    compared.different[name] = (compared.different[name] ?? 0) + 1;
    compared.first ??= `${name}: ${ids.length} tokens, not ${count}: ${JSON.stringify(prompt?.text ?? messages)}`;
  }
  return compared;
}

const settings = new Map<string, Parameters<Profiles['of']>[0]>();

function settingsOf(file: string): Parameters<Profiles['of']>[0] {
  const known = settings.get(file);
  if (known) return known;
  const made = { engine: 'vllm', context: { window: 1_000_000, tokenizer: { file } } } as never;
  settings.set(file, made);
  return made;
}

function digestOf(ids: readonly number[]): string {
  return createHash('sha256').update(ids.join(',')).digest('hex').slice(0, 16);
}

/** `node test/context/reference/compare.ts FOLDER` */
if (import.meta.main) {
  const folder = process.argv[2]!;
  console.log(readFileSync(join(folder, 'chats.jsonl')).length, await compare(folder));
}
