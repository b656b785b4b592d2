import { readFileSync } from 'node:fs';

/**
 * One measured request, as `armature bench --samples` writes it: a line of JSON that is also a row of a trace. Milliseconds;
 * latencies count from the moment at which it was meant to be sent.
 */
export interface Sample {
  /** After the start of the count. */
  timestamp: number;
  /** What the engine read, where its usage says it; else what was asked for. */
  input_length: number;
  output_length: number;
  stream: boolean;
  /** Of a stream. */
  first_token_ms?: number;
  total_ms: number;
}

/** Reads samples; what is no line of them is told in words. */
export function readSamples(file: string): Sample[] | string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return `${file} cannot be read: ${(error as Error).message}`;
  }
  const samples: Sample[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const sample = readLine(line);
    if (!sample)
      return `${file}: line ${index + 1} is no sample of armature bench --samples: ${line.slice(0, 80)}`;
    samples.push(sample);
  }
  if (samples.length === 0) return `${file} has no samples`;
  return samples.sort((a, b) => a.timestamp - b.timestamp);
}

function readLine(line: string): Sample | undefined {
  let value: Partial<Sample> | null;
  try {
    value = JSON.parse(line) as Partial<Sample> | null;
  } catch {
    return undefined; // told by its line
  }
  const isTime = (ms: unknown) => typeof ms === 'number' && Number.isFinite(ms) && ms >= 0;
  if (!value || !isTime(value.timestamp) || !isTime(value.total_ms)) return undefined;
  if (!Number.isSafeInteger(value.input_length) || !Number.isSafeInteger(value.output_length))
    return undefined;
  if (value.first_token_ms !== undefined && !isTime(value.first_token_ms)) return undefined;
  return { ...(value as Sample), stream: value.stream === true };
}
