import { type Member as JsonMember, scanMembers } from '../../protocols/json-members.ts';
import { type Datatype, writeInferAnswer } from '../../protocols/oip/tensors.ts';
import { embeddingsList, embeddingsUsage } from '../../protocols/openai/embeddings.ts';
import { replaced } from '../batching/pieces.ts';
import { without } from '../carrier.ts';
import type { HeaderList } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { JSON_BYTES } from '../whole-carrier.ts';
import type { Frame, Member, RowAnswer } from './member.ts';

/** Gives a caller the answer to its texts, all of which are back. `carrier`: the batch that brought the last of them. */
export function answerOf(member: Member, rows: readonly RowAnswer[], frame: Frame, carrier: Exchange): void {
  if (member.asked.infer) answerInfer(member, rows as readonly (readonly Buffer[])[], frame, carrier);
  else if (frame.document) answerDocument(member, rows as readonly string[], frame, frame.document);
  else answerVectors(member, rows as readonly Float32Array[], frame, carrier);
}

/** The engine's own document, with the caller's rows and the tokens as they were counted here. */
function answerDocument(member: Member, rows: readonly string[], { headers }: Frame, document: Buffer): void {
  const { members } = scanMembers(document) as { members: JsonMember[] };
  const find = (key: string) => members.find((each) => each.key === key);
  const edits = new Map<JsonMember, string>([[find('data')!, `[${rows.join(',')}]`]]);
  const usage = find('usage');
  if (usage) edits.set(usage, JSON.stringify(embeddingsUsage(member.tokensIn)));
  const id = find('id');
  if (id) edits.set(id, JSON.stringify(`embd-${member.x.id}`));
  member.respond(200, [...headers], replaced(document, edits));
}

function answerVectors(
  member: Member,
  rows: readonly Float32Array[],
  { headers }: Frame,
  carrier: Exchange,
): void {
  const { base64, dimensions } = member.asked;
  const width = rows[0]!.length;
  if (dimensions !== undefined && dimensions !== width) {
    member.refuse({
      code: 'invalid_request',
      message: `dimensions: this model's vectors have ${width}, and cannot be cut`,
      phase: 'sent',
      param: 'dimensions',
      shouldRetry: false,
    });
    return;
  }
  const body = embeddingsList(rows, { model: carrier.backend!.model, tokens: member.tokensIn, base64 });
  member.respond(200, [...ownHeaders(headers), 'content-type', 'application/json'], JSON.stringify(body));
}

function answerInfer(
  member: Member,
  rows: readonly (readonly Buffer[])[],
  { headers, outputs }: Frame,
  carrier: Exchange,
): void {
  const infer = member.asked.infer!;
  const wanted = infer.outputs;
  const written = writeInferAnswer(
    { model: carrier.backend!.model, version: versionOf(member.x), id: infer.id },
    outputs.map(({ name, datatype, row }, at) => ({
      tensor: {
        name,
        datatype: datatype as Datatype,
        shape: [rows.length, ...row],
        data: Buffer.concat(rows.map((each) => each[at]!)),
      },
      binary: wanted?.find((each) => each.name === name)?.binary ?? infer.binaryOutputs,
    })),
  );
  if (typeof written === 'string') {
    member.refuse({ code: 'invalid_request', message: written, phase: 'sent', shouldRetry: false });
    return;
  }
  const { body, headerLength } = written;
  const framing =
    headerLength === undefined
      ? ['content-type', 'application/json']
      : ['content-type', 'application/octet-stream', JSON_BYTES, String(headerLength)];
  member.respond(200, [...ownHeaders(headers), ...framing], body);
}

function versionOf({ call }: Exchange): string {
  return (call!.protocol === 'oip' ? call!.version : undefined) ?? '1';
}

/** What of the engine's headers is about more than its own framing. */
function ownHeaders(headers: HeaderList): HeaderList {
  return without(headers, 'content-type', JSON_BYTES);
}
