import { isUtf8 } from 'node:buffer';
import { type Member, rawValue, scanMembers, stringValue } from '../../protocols/json-members.ts';
import type { BatchFault } from '../files/store/rows.ts';

const CUSTOM_ID_MAX = 512;
const MEMBERS = ['custom_id', 'method', 'url', 'body'] as const;

/** The request that a line of a batch is. */
export interface LineRequest {
  customId: string;
  model: string;
  /** Where its body stands in the line. */
  start: number;
  end: number;
}

export type LineFault = Omit<BatchFault, 'line'>;

/** Reads a line as its sender wrote it: the bytes of its body are what is asked. `checked`: it has been read before. */
export function readLineRequest(bytes: Buffer, endpoint: string, checked = false): LineRequest | LineFault {
  if (!checked) {
    const wrong = whyNoJson(bytes);
    if (wrong !== undefined) return fault('invalid_json_line', `This line is not a JSON object: ${wrong}.`);
  }
  const scanned = scanMembers(bytes, 0, bytes.length, MEMBERS);
  if (typeof scanned === 'string')
    return fault('invalid_json_line', `This line is not a JSON object: ${scanned}.`);
  const found: Partial<Record<string, Member>> = {};
  for (const member of scanned.members) {
    if (found[member.key]) return fault('invalid_json_line', `'${member.key}' is given twice.`, member.key);
    found[member.key] = member;
  }
  const { custom_id: id, method, url, body } = found;
  const customId = id && stringValue(bytes, id);
  if (!customId)
    return fault('missing_custom_id', "Expected 'custom_id' to be a text that is not empty.", 'custom_id');
  if (customId.length > CUSTOM_ID_MAX)
    return fault('invalid_custom_id', `'custom_id' is longer than ${CUSTOM_ID_MAX} characters.`, 'custom_id');
  if (!method || stringValue(bytes, method) !== 'POST')
    return fault('invalid_method', "Expected 'method' to be POST.", 'method');
  if (!url || stringValue(bytes, url) !== endpoint)
    return fault('invalid_url', `Expected 'url' to be ${endpoint}, the endpoint of the batch.`, 'url');
  if (!body) return fault('missing_body', "The member 'body' is missing.", 'body');
  return readBody(bytes, body, customId);
}

function readBody(bytes: Buffer, body: Member, customId: string): LineRequest | LineFault {
  const scanned = scanMembers(bytes, body.start, body.end, ['model', 'stream']);
  if (typeof scanned === 'string')
    return fault('invalid_body', "Expected 'body' to be a JSON object.", 'body');
  let model: string | undefined;
  for (const member of scanned.members) {
    if (member.key === 'model') {
      if (model !== undefined) return fault('invalid_body', "'model' is given twice.", 'body.model');
      model = stringValue(bytes, member) ?? '';
    } else if (rawValue(bytes, member) === 'true')
      return fault('invalid_body', "A batch has no streams: leave 'stream' out, or false.", 'body.stream');
  }
  if (!model) return fault('missing_model', "Expected 'body.model' to be the name of a model.", 'body.model');
  return { customId, model, start: body.start, end: body.end };
}

function whyNoJson(bytes: Buffer): string | undefined {
  if (!isUtf8(bytes)) return 'it is not UTF-8';
  try {
    JSON.parse(bytes.toString('utf8'));
    return undefined;
  } catch (error) {
    return (error as Error).message.replace(/\.$/, '').slice(0, 200);
  }
}

function fault(code: string, message: string, param: string | null = null): LineFault {
  return { code, message, param };
}
