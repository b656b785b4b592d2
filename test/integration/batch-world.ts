import type OpenAI from 'openai';
import { toFile } from 'openai';
import { type Armature, type Config, plainConfig, startArmature } from '../upstream/armature.ts';
import { type Script, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { chatAnswer } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';
import { eventually, pause } from '../upstream/waiting.ts';
import { openaiOf } from './openai-client.ts';

/** An Armature, an engine, and OpenAI's own client, for batches. */
export interface BatchWorld extends AsyncDisposable {
  engine: ScriptedEngine;
  armature: Armature;
  openai: OpenAI;
}

/** Answers `answer:` and what was asked. */
export function answersAsked(delayMs = 0): Script {
  return async (x) => {
    if (delayMs > 0) await pause(delayMs);
    await x.json(chatAnswer(`answer:${askedOf(x.request)}`));
  };
}

export function askedOf(request: { json(): Json }): string {
  return request.json().messages.at(-1).content;
}

export async function batchWorld(
  script: Script,
  more: { backend?: Config; route?: Config; top?: Config } = {},
): Promise<BatchWorld> {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine(script));
  const armature = stack.use(await startArmature(plainConfig(engine, more)));
  const openai = openaiOf(armature, { maxRetries: 5 });
  return { engine, armature, openai, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

export function batchLine(i: number, content = `question ${i}`, more: Json = {}): Json {
  const body = { model: 'chat', messages: [{ role: 'user', content }] };
  return { custom_id: `q-${i}`, method: 'POST', url: '/v1/chat/completions', body, ...more };
}

export function jsonLines(lines: readonly unknown[]): string {
  return lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
}

/** Uploads the lines, and makes a batch of them. */
export async function startBatch(
  openai: OpenAI,
  text: string | Buffer,
  endpoint: OpenAI.BatchCreateParams['endpoint'] = '/v1/chat/completions',
): Promise<OpenAI.Batch> {
  const file = await openai.files.create({
    purpose: 'batch',
    file: await toFile(Buffer.from(text), 'in.jsonl'),
  });
  return openai.batches.create({
    input_file_id: file.id,
    endpoint,
    completion_window: '24h',
  });
}

const OVER = ['completed', 'failed', 'expired', 'cancelled'];

/** Waits for the end of a batch; `look` sees it each time on the way. Outages on the way are waited out. */
export async function batchEnd(
  openai: OpenAI,
  id: string,
  withinMs = 60_000,
  look: (batch: OpenAI.Batch) => void = () => undefined,
): Promise<OpenAI.Batch> {
  let batch: OpenAI.Batch | undefined;
  await eventually(
    `${id} is over`,
    async () => {
      batch = await openai.batches.retrieve(id).catch(() => undefined);
      if (batch) look(batch);
      return batch !== undefined && OVER.includes(batch.status);
    },
    withinMs,
  );
  return batch!;
}

export async function linesOf(openai: OpenAI, id: string | null | undefined): Promise<Json[]> {
  if (!id) return [];
  const text = await (await openai.files.content(id)).text();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** The ids that come more than once, that are missing, and that nobody asked. */
export function offOnce(
  lines: readonly Json[],
  count: number,
): { twice: string[]; missing: number; strange: number } {
  const seen = new Map<string, number>();
  for (const { custom_id: id } of lines) seen.set(id, (seen.get(id) ?? 0) + 1);
  const wanted = Array.from({ length: count }, (_, i) => `q-${i}`);
  return {
    twice: [...seen].filter(([, times]) => times > 1).map(([id]) => id),
    missing: wanted.filter((id) => !seen.has(id)).length,
    strange: seen.size - wanted.filter((id) => seen.has(id)).length,
  };
}
export const ONCE = { twice: [], missing: 0, strange: 0 };
