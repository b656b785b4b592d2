import { readOipPath } from '../../protocols/oip/paths.ts';
import { type InferCall, readInferCall, type Tensor, writeInferAnswer } from '../../protocols/oip/tensors.ts';
import { badRequest, HostFault } from '../fault.ts';
import type { Exchange, Handler } from '../listener.ts';
import type { Served } from './chat.ts';
import { Cut, run } from './generate.ts';

/** The one version that the model has. */
const VERSION = '1';
/** What a row, an entry of the first input's first dimension, costs in tokens of a prompt. */
const ROW_TOKENS = 16;

/**
 * The Open Inference Protocol: an identity model. Its outputs OUTPUT0, OUTPUT1, ... are the inputs in their order, whatever
 * those are called; the time is that of reading ROW_TOKENS tokens for each row.
 */
export function oipHandler(served: Served, method: string, path: string): Handler | undefined {
  const call = readOipPath(path);
  if (!call || method !== (call.call === 'infer' ? 'POST' : 'GET')) return undefined;
  if (!('model' in call)) {
    if (call.call !== 'server') return (exchange) => exchange.answer(200, '');
    return (exchange) =>
      exchange.answer(200, { name: 'armature-sim', version: VERSION, extensions: ['binary_tensor_data'] });
  }
  const { model, version } = call;
  return (exchange) => {
    checkModel(served, model, version);
    if (call.call === 'model-ready') exchange.answer(200, { name: served.model, ready: true });
    else if (call.call === 'model') exchange.answer(200, metadata(served));
    else return infer(served, exchange);
  };
}

function checkModel(served: Served, model: string, version: string | undefined): void {
  if (model === served.model && (version ?? VERSION) === VERSION) return;
  throw new HostFault(404, `unknown model: '${model}'${version === undefined ? '' : ` version ${version}`}`);
}

function metadata(served: Served): object {
  const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [-1, -1] });
  return {
    name: served.model,
    versions: [VERSION],
    platform: 'armature-sim',
    inputs: [tensor('INPUT0')],
    outputs: [tensor('OUTPUT0')],
  };
}

async function infer(served: Served, exchange: Exchange): Promise<void> {
  const headerLength = exchange.headers['inference-header-content-length'];
  const call = readInferCall(exchange.body, headerLength?.toString());
  if (typeof call === 'string') throw badRequest(call);
  const outputs = chooseOutputs(call);
  const job = { promptTokens: ROW_TOKENS * Math.max(1, call.inputs[0]!.shape[0] ?? 1), outputTokens: 0 };
  if (!served.accelerator.fits(job))
    throw badRequest(`${call.inputs[0]!.shape[0]} rows are too many at once`);
  const answer = writeInferAnswer({ model: served.model, version: VERSION, id: call.id }, outputs);
  if (typeof answer === 'string') throw badRequest(answer);
  try {
    await run(served.accelerator, job, exchange.gone, () => {});
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    exchange.cut(answer.body.toString('latin1', 0, 16));
    return;
  }
  exchange.answer(200, answer.body, {
    ...(answer.headerLength !== undefined && {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': String(answer.headerLength),
    }),
  });
}

function chooseOutputs(call: InferCall): { tensor: Tensor; binary: boolean }[] {
  const all = call.inputs.map((tensor, index) => ({ ...tensor, name: `OUTPUT${index}` }));
  if (!call.outputs || call.outputs.length === 0) {
    return all.map((tensor) => ({ tensor, binary: call.binaryOutputs }));
  }
  return call.outputs.map(({ name, binary }) => {
    const tensor = all.find((one) => one.name === name);
    if (!tensor)
      throw badRequest(`there is no output '${name}'; they are ${all.map((one) => one.name).join(', ')}`);
    return { tensor, binary: binary ?? call.binaryOutputs };
  });
}
