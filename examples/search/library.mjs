// The library of the search example: 46 articles, cut into passages, found by meaning and by words. It speaks as much of
// the Open Inference Protocol as Armature asks for, with three models:
//
//   nearest  vector FP32 [1, n]                    the passages nearest in meaning
//   words    text BYTES [1]                        the passages that share its rare words (BM25)
//   shown    passages BYTES [n], summary BYTES [1] keeps for GET /shown/REQUEST what an answer was made from
//
// The vectors of the passages are asked of Armature itself, once, at the start. Until then it says that it is not ready.
//
//   node library.mjs GATEWAY PORT
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

const FOUND = 8; // passages that each way of looking gives
const PASSAGE_WORDS = 70;
const PASSAGE_CHARS_MAX = 900;
const TOGETHER = 32; // texts of one request for vectors
const TRIES = 60;
const SHOWN_MAX = 100; // answers that are remembered
const BODY_BYTES_MAX = 4 * 1024 * 1024;

const passages = readArticles().flatMap(passagesOf);
const countWords = wordIndex(passages);
const shown = new Map();
let vectors;

const models = {
  nearest: ({ vector }) => [{ name: 'passages', ...texts(nearest(vector.data)) }],
  words: ({ text }) => [{ name: 'passages', ...texts(countWords(String(text.data[0]))) }],
  shown: ({ passages, summary }, request) => {
    if (shown.size >= SHOWN_MAX) shown.delete(shown.keys().next().value);
    shown.set(request, { passages: passages.data, summary: summary.data[0] });
    return [
      { name: 'kept', datatype: 'BOOL', shape: [passages.data.length], data: passages.data.map(() => true) },
    ];
  },
};

const [gateway, port] = process.argv.slice(2);
createServer(answer).listen(Number(port), '127.0.0.1');
vectors = await embedAll(passages);
console.log('the library is ready');

function readArticles() {
  const lines = readFileSync(new URL('articles/articles.jsonl', import.meta.url), 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/** Paragraphs put together until they are long enough to mean something; each begins with its article's title. */
function passagesOf({ title, date, text }) {
  const parts = [];
  let words = 0;
  for (const paragraph of text.split(/\n\s*\n/)) {
    if (parts.length === 0 || words >= PASSAGE_WORDS) {
      parts.push([]);
      words = 0;
    }
    const line = paragraph.replace(/^#+\s*/, '').trim();
    parts.at(-1).push(line);
    words += line.split(/\s+/).length;
  }
  return parts.map(
    (part) => `${title} (${date.slice(0, 4)})\n${part.join('\n').slice(0, PASSAGE_CHARS_MAX)}`,
  );
}

async function embedAll(all) {
  const found = [];
  for (let at = 0; at < all.length; at += TOGETHER) {
    console.log(`the library asks for the vectors of its passages: ${at} of ${all.length}`);
    found.push(...(await embed(all.slice(at, at + TOGETHER))));
  }
  return found;
}

/** Asks again while the embedding model is still loading, not before it is told to. */
async function embed(input) {
  for (let tries = 1; ; tries++) {
    const answer = await fetch(`${gateway}/v1/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'embeddings', input }),
    });
    if (answer.ok) return (await answer.json()).data.map(({ embedding }) => embedding);
    const why = await answer.text();
    if (tries === TRIES || (answer.status !== 503 && answer.status !== 429)) {
      throw new Error(`no vectors: ${answer.status} ${why}`);
    }
    await wait(1000 * Number(answer.headers.get('retry-after') ?? 1));
  }
}

/** Vectors have length 1, so their product is the cosine. */
function nearest(wanted) {
  return best((i) => vectors[i].reduce((sum, value, at) => sum + value * wanted[at], 0));
}

/** BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009), with its usual k1 1.2 and b 0.75. */
function wordIndex(all) {
  const counts = all.map((passage) => {
    const count = new Map();
    for (const word of wordsOf(passage)) count.set(word, (count.get(word) ?? 0) + 1);
    return count;
  });
  const lengths = all.map((passage) => wordsOf(passage).length);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / all.length;
  const having = (word) => counts.filter((count) => count.has(word)).length;
  return (text) => {
    const wanted = [...new Set(wordsOf(text))].map((word) => [word, having(word)]).filter(([, n]) => n > 0);
    return best((i) =>
      wanted.reduce((sum, [word, n]) => {
        const count = counts[i].get(word) ?? 0;
        const rarity = Math.log(1 + (all.length - n + 0.5) / (n + 0.5));
        return sum + (rarity * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * lengths[i]) / mean));
      }, 0),
    );
  };
}

/** Without plural and other endings, roughly. */
function wordsOf(text) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.filter((word) => word.length > 2).map((word) => word.replace(/(ies|es|s|ing|ed|y)$/, ''));
}

/** The passages with the greatest scores above 0. */
function best(scoreOf) {
  const scores = passages.map((passage, i) => ({ passage, score: scoreOf(i) }));
  const good = scores.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
  return good.slice(0, FOUND).map(({ passage }) => passage);
}

function texts(data) {
  return { datatype: 'BYTES', shape: [data.length], data };
}

async function answer(request, response) {
  const say = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  try {
    const [, version, what, name, verb] = request.url.split('/');
    if (version === 'shown') return shown.has(what) ? say(200, shown.get(what)) : say(404, {});
    if (what === 'health')
      return vectors || name === 'live' ? say(200, {}) : say(503, { error: 'not ready' });
    if (version !== 'v2' || what !== 'models' || !models[name]) return say(404, { error: 'not found' });
    if (verb === 'ready') return vectors ? say(200, {}) : say(503, { error: 'not ready' });
    if (verb !== 'infer') return say(200, { name, platform: 'library', inputs: [], outputs: [] });
    if (!vectors) return say(503, { error: 'the library is not ready' });
    const { inputs } = JSON.parse(await bodyOf(request));
    const byName = Object.fromEntries(inputs.map((input) => [input.name, input]));
    say(200, { model_name: name, outputs: models[name](byName, request.headers['x-request-id']) });
  } catch (error) {
    say(400, { error: String(error) });
  }
}

async function bodyOf(request) {
  const pieces = [];
  let bytes = 0;
  for await (const piece of request) {
    pieces.push(piece);
    if ((bytes += piece.length) > BODY_BYTES_MAX) throw new Error('the body is too long');
  }
  return Buffer.concat(pieces).toString();
}
