import { type Member, rawValue, scanMembers, stringValue } from '../json-members.ts';

/** What Armature reads of an inference request; its bytes pass as they are. */
export interface OipRequest {
  id: string | undefined;
  /** Requests of one sequence meet state in one endpoint's memory. */
  sequence: { id: string; start: boolean; end: boolean } | undefined;
}

/**
 * Reads the JSON part of an inference request. `headerLength` is the value of Inference-Header-Content-Length where the
 * binary tensor extension is used: JSON first, then raw tensors; 0 means raw input alone.
 * The result is a message where the request cannot be read.
 */
export function readOipRequest(body: Buffer, headerLength: string | undefined): OipRequest | string {
  let jsonEnd = body.length;
  if (headerLength !== undefined) {
    if (!/^\d{1,15}$/.test(headerLength))
      return `Inference-Header-Content-Length must be a whole number, not '${headerLength.slice(0, 40)}'`;
    jsonEnd = Number(headerLength);
    if (jsonEnd > body.length)
      return `Inference-Header-Content-Length is ${jsonEnd}, but the body has ${body.length} bytes`;
    if (jsonEnd === 0) return { id: undefined, sequence: undefined };
  }
  const scanned = scanMembers(body, 0, jsonEnd);
  if (typeof scanned === 'string') return `the request cannot be read: ${scanned}`;
  const request: OipRequest = { id: undefined, sequence: undefined };
  const twice = repeated(scanned.members, ['id', 'parameters']);
  if (twice !== undefined) return `the member '${twice}' is given twice`;
  for (const member of scanned.members) {
    if (member.key === 'id') request.id = stringValue(body, member);
    if (member.key !== 'parameters') continue;
    const sequence = readSequence(body, member.start, member.end);
    if (typeof sequence === 'string') return sequence;
    request.sequence = sequence;
  }
  return request;
}

/** A key of these that stands in the object more than once: two readers could take different ones. */
function repeated(members: readonly Member[], keys: readonly string[]): string | undefined {
  return keys.find((key) => members.filter((member) => member.key === key).length > 1);
}

const SEQUENCE_KEYS = ['sequence_id', 'sequence_start', 'sequence_end'];

function readSequence(body: Buffer, start: number, end: number): OipRequest['sequence'] | string {
  const scanned = scanMembers(body, start, end);
  if (typeof scanned === 'string') return undefined; // not an object: the engine will say so
  const twice = repeated(scanned.members, SEQUENCE_KEYS);
  if (twice !== undefined) return `the parameter '${twice}' is given twice`;
  const text = (key: string) => {
    const member = scanned.members.find((each) => each.key === key);
    return member && (stringValue(body, member) ?? rawValue(body, member));
  };
  const id = text('sequence_id');
  // 0 and "" mean no sequence (Triton's sequence extension).
  if (id === undefined || id === '0' || id === '') return undefined;
  return {
    id: id.slice(0, 1024),
    start: text('sequence_start') === 'true',
    end: text('sequence_end') === 'true',
  };
}
