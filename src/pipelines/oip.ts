import { type Exchange, JSON_TYPE, type OipModelCall, type Path } from '../gateway/contracts.ts';
import { type Failure, invalidRequest } from '../kernel/errors.ts';
import { type Json, setMember } from '../protocols/json-object.ts';
import {
  elementsOf,
  type InferCall,
  readInferCall,
  type Tensor,
  toJson,
  writeInferAnswer,
} from '../protocols/oip/tensors.ts';
import type { Framed } from './answers.ts';
import type { CallerRequest } from './caller-request.ts';
import type { StageValue } from './kinds/contracts.ts';
import type { PipelinePlan } from './plan.ts';

/** Pipelines called over the Open Inference Protocol: a model with one input of text, and what the last stage finds as outputs. */

const VERSION = '1';
const INPUT = 'text';

/** Outputs that a pipeline may have, by what its last stage gives. */
const OUTPUTS = [
  { name: 'text', datatype: 'BYTES', shape: [1] },
  { name: 'class', datatype: 'BYTES', shape: [1] },
  { name: 'score', datatype: 'FP64', shape: [1] },
  { name: 'vectors', datatype: 'FP32', shape: [-1, -1] },
] as const;

/** What an inference request asks a pipeline; a failure where it cannot be read so. */
export function readOipCaller(x: Exchange): CallerRequest | Failure {
  const unknown = noSuchVersion(x.call as OipModelCall);
  if (unknown) return unknown;
  const call = inferCall(x);
  if (typeof call === 'string') return invalidRequest(call);
  if ('raw' in call) return called(call.raw, {});
  const names = call.inputs.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) return invalidRequest(`input '${twice.slice(0, 100)}' is given twice`);
  const texts = call.inputs.filter(({ datatype }) => datatype === 'BYTES');
  const input = texts.find(({ name }) => name === INPUT) ?? (texts.length === 1 ? texts[0] : undefined);
  if (!input) {
    return invalidRequest(
      texts.length === 0
        ? `a pipeline takes an input of BYTES with one text, such as '${INPUT}'`
        : `of several inputs of BYTES one must be named '${INPUT}'`,
    );
  }
  if (elementsOf(input.shape) !== 1) {
    return invalidRequest(`input '${input.name}': a pipeline takes one text, not ${elementsOf(input.shape)}`);
  }
  const strange = call.outputs?.find(({ name }) => !OUTPUTS.some((output) => output.name === name));
  if (strange) return invalidRequest(`there is no output '${strange.name.slice(0, 100)}'`);
  const text = readText(input.data.subarray(4));
  if (text === undefined) return invalidRequest(`input '${input.name}': the text is not UTF-8`);
  const others: Json = {};
  for (const other of call.inputs) {
    if (other === input) continue;
    const value = toJson(other);
    if (value === undefined)
      return invalidRequest(`input '${other.name}': a pipeline reads no ${other.datatype}`);
    setMember(others, other.name, value);
  }
  return called(text, others);
}

function called(text: string, body: Json): CallerRequest {
  return { text, messages: [{ role: 'user', content: text }], body };
}

/** `raw`: the body is the one input itself, without any JSON. */
function inferCall(x: Exchange): InferCall | { raw: string } | string {
  const call = x.call!;
  const length = call.protocol === 'oip' ? call.headerLength : undefined;
  if (length === undefined || Number(length) !== 0) return readInferCall(x.caller.body, length);
  const raw = readText(x.caller.body);
  return raw === undefined ? 'the text is not UTF-8' : { raw };
}

/** Undefined where it is none: what cannot be read is not put in other characters. */
function readText(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // no UTF-8
  }
}

/** What the last stage has found, as the outputs of an inference. */
export function frameOip(x: Exchange, value: StageValue): Framed | undefined {
  const call = inferCall(x);
  if (typeof call === 'string') return undefined; // it was read before
  const raw = 'raw' in call;
  const wanted = raw ? undefined : call.outputs;
  const outputs = outputsOf(value)
    .filter(({ name }) => !wanted || wanted.some((output) => output.name === name))
    .map((tensor) => ({
      tensor,
      binary: wanted?.find(({ name }) => name === tensor.name)?.binary ?? (!raw && call.binaryOutputs),
    }));
  const head = { model: x.call!.route, version: VERSION, id: raw ? undefined : call.id };
  const answer = writeInferAnswer(head, outputs);
  if (typeof answer === 'string') return undefined;
  const { body, headerLength } = answer;
  if (headerLength === undefined) return { headers: [...JSON_TYPE], body };
  return {
    headers: [
      'content-type',
      'application/octet-stream',
      'inference-header-content-length',
      String(headerLength),
    ],
    body,
  };
}

function outputsOf(value: StageValue): Tensor[] {
  const tensors: Tensor[] = [textTensor('text', value.text)];
  if (value.class !== undefined) tensors.push(textTensor('class', value.class));
  if (value.score !== undefined) {
    const data = Buffer.alloc(8);
    data.writeDoubleLE(value.score);
    tensors.push({ name: 'score', datatype: 'FP64', shape: [1], data });
  }
  const { vectors } = value;
  if (vectors && vectors.length > 0) {
    const width = vectors[0]!.length;
    const data = Buffer.alloc(vectors.length * width * 4);
    for (const [row, vector] of vectors.entries()) {
      for (const [column, number] of vector.entries()) data.writeFloatLE(number, (row * width + column) * 4);
    }
    tensors.push({ name: 'vectors', datatype: 'FP32', shape: [vectors.length, width], data });
  }
  return tensors;
}

function textTensor(name: string, text: string): Tensor {
  const bytes = Buffer.from(text);
  const data = Buffer.alloc(4 + bytes.length);
  data.writeUInt32LE(bytes.length);
  bytes.copy(data, 4);
  return { name, datatype: 'BYTES', shape: [1], data };
}

/** Answers what a pipeline is as a model, and whether it is ready: its input, and the outputs that its last stage may give. */
export function answerOipModel(path: Path, x: Exchange, { name, last }: PipelinePlan): void {
  const call = x.call as OipModelCall;
  const unknown = noSuchVersion(call);
  if (unknown) {
    path.refuse(x, unknown);
    return;
  }
  const document =
    call.kind === 'model-ready'
      ? { name, ready: true }
      : {
          name,
          versions: [VERSION],
          platform: 'armature_pipeline',
          inputs: [{ name: INPUT, datatype: 'BYTES', shape: [1] }],
          outputs: OUTPUTS.filter((output) => output.name === 'text' || last.gives.has(output.name)),
        };
  path.answer(x, { status: 200, headers: [...JSON_TYPE], body: JSON.stringify(document) }, 'ok');
}

function noSuchVersion({ route, version }: OipModelCall): Failure | undefined {
  if (version === undefined || version === VERSION) return undefined;
  return { ...invalidRequest(`the pipeline '${route}' has version ${VERSION} alone`), code: 'not_found' };
}
