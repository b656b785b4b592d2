import { readOipPath } from '../../protocols/oip/paths.ts';
import { elementsOf, readInferCall, writeInferAnswer } from '../../protocols/oip/tensors.ts';
import { badRequest, HostFault } from '../fault.ts';
import type { Exchange, Handler } from '../listener.ts';
import type { Places } from '../places.ts';
import type { OnnxSession } from './session.ts';
import { describe, feedsOf, tensorOf } from './tensors.ts';

/** The one version that a model file has. */
const VERSION = '1';

/** A model as the Open Inference Protocol shows it. */
export interface TensorModel {
  name: string;
  session: OnnxSession;
  /** Inferences run one after the other: it is one model on one machine. */
  places: Places;
  /** Elements of its inputs together: of texts their tokens, padding included. */
  elementsMax: number;
}

export function oipHandler(model: TensorModel, method: string, path: string): Handler | undefined {
  const call = readOipPath(path);
  if (!call || method !== (call.call === 'infer' ? 'POST' : 'GET')) return undefined;
  if (!('model' in call)) {
    if (call.call !== 'server') return (exchange) => exchange.answer(200, { [call.call]: true });
    return (exchange) =>
      exchange.answer(200, { name: 'armature', version: VERSION, extensions: ['binary_tensor_data'] });
  }
  return (exchange) => {
    if (call.model !== model.name || (call.version ?? VERSION) !== VERSION) {
      throw new HostFault(
        404,
        `unknown model: '${call.model}'${call.version ? ` version ${call.version}` : ''}`,
      );
    }
    if (call.call === 'infer') return infer(model, exchange);
    exchange.answer(200, call.call === 'model' ? metadata(model) : { name: model.name, ready: true });
  };
}

function metadata({ name, session }: TensorModel): object {
  return {
    name,
    versions: [VERSION],
    platform: 'onnx_onnxruntime',
    inputs: session.loaded.inputs.map(describe),
    outputs: session.loaded.outputs.map(describe),
  };
}

async function infer({ name, session, places, elementsMax }: TensorModel, exchange: Exchange): Promise<void> {
  const headerLength = exchange.headers['inference-header-content-length'];
  const call = readInferCall(exchange.body, headerLength?.toString());
  if (typeof call === 'string') throw badRequest(call);
  const feeds = feedsOf(call, session.loaded.inputs);
  const largest = call.inputs.reduce((most, { shape }) => Math.max(most, elementsOf(shape)), 0);
  if (largest > elementsMax) {
    throw badRequest(
      `${largest} tokens, padding included, are more than the ${elementsMax} computed together`,
    );
  }
  const all = session.loaded.outputs.map((output) => output.name);
  const wanted = call.outputs?.length
    ? call.outputs
    : all.map((output) => ({ name: output, binary: undefined }));
  for (const output of wanted) {
    if (!all.includes(output.name)) {
      throw badRequest(`unknown output '${output.name}': the model has ${all.join(', ')}`);
    }
  }

  if (!(await places.take(exchange.gone))) return;
  try {
    const made = await session.run({ what: 'infer', feeds, outputs: wanted.map((output) => output.name) });
    const answer = writeInferAnswer(
      { model: name, version: VERSION, id: call.id },
      wanted.map((output) => ({
        tensor: tensorOf(output.name, made[output.name]!),
        binary: output.binary ?? call.binaryOutputs,
      })),
    );
    if (typeof answer === 'string') throw badRequest(answer);
    exchange.answer(200, answer.body, {
      ...(answer.headerLength !== undefined && {
        'content-type': 'application/octet-stream',
        'inference-header-content-length': String(answer.headerLength),
      }),
    });
  } finally {
    places.release();
  }
}
