import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readOipPath } from '../../src/protocols/oip/paths.ts';
import { readInferCall, type Tensor, writeInferAnswer } from '../../src/protocols/oip/tensors.ts';
import { type Passage, readPassages, sentencesOf } from './articles.ts';
import { DIMENSIONS, dot, unit, WordVectors } from './word-vectors.ts';

/**
 * `node bench/pipelines/models.ts DATA`: three real models in one process, which prints its address. `vectors` on
 * /v1/embeddings; by the Open Inference Protocol `topics` (vector -> a probability for each article) and `extracts`
 * (text, vector, topic -> the sentence of it that says most).
 */

/** How much surer a small difference of cosines is made. Only the order matters to the pipeline. */
const SHARPNESS = 20;

const words = await WordVectors.open();
const centres = centresOf(readPassages(process.argv[2]!).examples);

/** The mean of the vectors of a topic's examples, at length 1, in the order of the articles. */
function centresOf(examples: readonly Passage[]): Map<string, Float32Array> {
  const sums = new Map<string, Float32Array>();
  for (const { topic, text } of examples) {
    const sum = sums.get(topic) ?? new Float32Array(DIMENSIONS);
    words.of(text).vector.forEach((number, at) => void (sum[at]! += number));
    sums.set(topic, sum);
  }
  return new Map([...sums].map(([topic, sum]) => [topic, unit(sum)]));
}

function topicsOf(vector: Float32Array): Float32Array {
  const scores = Float32Array.from(centres.values(), (centre) => Math.exp(SHARPNESS * dot(centre, vector)));
  const sum = scores.reduce((all, score) => all + score, 0);
  return scores.map((score) => score / sum);
}

/** The sentence that is nearest to the whole text and to its topic in meaning. */
function extractOf(text: string, whole: Float32Array, topic: string): string {
  const centre = centres.get(topic);
  let best = -Infinity;
  let chosen = text;
  for (const sentence of sentencesOf(text)) {
    const { vector } = words.of(sentence);
    const likeness = dot(whole, vector) + (centre ? dot(centre, vector) : 0);
    if (likeness > best) [best, chosen] = [likeness, sentence];
  }
  return chosen;
}

const numbers = ({ data }: Tensor) =>
  Float32Array.from({ length: data.length / 4 }, (_, at) => data.readFloatLE(at * 4));
/** An element of BYTES begins with its length. */
const firstText = ({ data }: Tensor) => data.toString('utf8', 4, 4 + data.readUInt32LE(0));

function infer(model: string, inputs: readonly Tensor[]): Tensor | undefined {
  const input = (name: string) => inputs.find((tensor) => tensor.name === name);
  const vector = input('vector');
  const [text, topic] = [input('text'), input('topic')];
  if (!vector) return undefined;
  if (model === 'topics') {
    const scores = topicsOf(numbers(vector));
    return { name: 'scores', datatype: 'FP32', shape: [1, scores.length], data: Buffer.from(scores.buffer) };
  }
  if (model !== 'extracts' || !text || !topic) return undefined;
  const said = Buffer.from(extractOf(firstText(text), numbers(vector), firstText(topic)));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(said.length);
  return { name: 'summary', datatype: 'BYTES', shape: [1], data: Buffer.concat([length, said]) };
}

function answer(asked: IncomingMessage, body: Buffer): { status: number; body: Buffer | string } {
  const path = asked.url!;
  if (path === '/v1/embeddings') {
    const { input } = JSON.parse(body.toString('utf8')) as { input: string | string[] };
    const found = [input].flat().map((text) => words.of(text));
    const tokens = found.reduce((sum, one) => sum + one.tokens, 0);
    const data = found.map(({ vector }, index) => ({
      object: 'embedding',
      index,
      embedding: Array.from(vector),
    }));
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    return { status: 200, body: JSON.stringify({ object: 'list', model: 'vectors', data, usage }) };
  }
  const oip = readOipPath(path);
  if (asked.method === 'GET') return { status: 200, body: '{}' };
  const call = readInferCall(body, asked.headers['inference-header-content-length']?.toString());
  if (typeof call === 'string' || !oip || !('model' in oip)) return { status: 400, body: '{"error":"?"}' };
  const tensor = infer(oip.model, call.inputs);
  if (!tensor) return { status: 400, body: '{"error":"inputs are missing"}' };
  const head = { model: oip.model, version: '1', id: call.id };
  const written = writeInferAnswer(head, [{ tensor, binary: false }]);
  if (typeof written === 'string') return { status: 500, body: JSON.stringify({ error: written }) };
  return { status: 200, body: written.body };
}

const server = createServer((asked: IncomingMessage, response: ServerResponse) => {
  const pieces: Buffer[] = [];
  asked.on('data', (piece: Buffer) => void pieces.push(piece));
  asked.on('end', () => {
    const { status, body } = answer(asked, Buffer.concat(pieces));
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${(server.address() as AddressInfo).port}`));
