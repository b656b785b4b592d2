import type { FileHandle } from 'node:fs/promises';
import type { BatchFault } from '../files/store/rows.ts';
import { readLineRequest } from './line-request.ts';
import { LineReader } from './lines.ts';

/** Faults that are told of one file. */
const FAULTS_MAX = 100;

export interface CheckOptions {
  endpoint: string;
  linesMax: number;
  /** Bytes of one line. */
  bytesMax: number;
  /** Why the model cannot be asked, in words; undefined where it can. */
  whyNot(model: string): string | undefined;
  /** Whether nobody wants to know any more. */
  ended(): boolean;
}

/** Reads the whole file before any line of it is asked. Gives the number of its lines, or what is wrong with it. */
export async function checkFile(
  handle: FileHandle,
  { endpoint, linesMax, bytesMax, whyNot, ended }: CheckOptions,
): Promise<{ total: number } | { faults: BatchFault[] } | undefined> {
  const reader = new LineReader(handle, bytesMax);
  const faults: BatchFault[] = [];
  const seen = new Map<string, number>();
  const models = new Map<string, string | undefined>();
  let total = 0;
  for (let found = await reader.next(); found; found = await reader.next()) {
    if (ended()) return undefined;
    const line = found.line + 1;
    const tell = (code: string, message: string, param: string | null = null) =>
      faults.push({ code, message, param, line });
    if (++total > linesMax) {
      tell('too_many_lines', `A batch has at most ${linesMax} requests (batches.linesMax).`);
      break;
    }
    const read = found.bytes && readLineRequest(found.bytes, endpoint);
    if (!read) tell('line_too_long', `A line has at most ${bytesMax} bytes (gateway.bodyBytesMax).`);
    else if ('code' in read) tell(read.code, read.message, read.param);
    else {
      const before = seen.get(read.customId);
      if (before === undefined) seen.set(read.customId, line);
      else tell('duplicate_custom_id', `Line ${before} has this 'custom_id' as well.`, 'custom_id');
      if (!models.has(read.model)) models.set(read.model, whyNot(read.model));
      const why = models.get(read.model);
      if (why !== undefined) tell('model_not_found', why, 'body.model');
      if (models.size > MODELS_KEPT) models.clear();
    }
    if (faults.length >= FAULTS_MAX) break;
  }
  if (total === 0)
    faults.push({
      code: 'empty_file',
      message: 'The file has no requests.',
      param: 'input_file_id',
      line: null,
    });
  return faults.length > 0 ? { faults } : { total };
}

const MODELS_KEPT = 1000;
