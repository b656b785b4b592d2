// biome-ignore-all lint/suspicious/noExplicitAny: bodies as they were sent, which the tests judge.
import { type Engine, status, type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';

/** A gateway with two routes of chat, one of vectors and one of tensors, and a pipeline over them that is called `search`. */
export function open(
  stages: object,
  engines: { chat?: Engine; other?: Engine; vectors?: Engine; tensors?: Engine },
  more: { deadline?: string; tenants?: object; vectors?: object } = {},
): VirtualGateway {
  const gateway = new VirtualGateway(config(stages, more));
  for (const [name, engine] of Object.entries(engines)) serve(gateway, name, engine);
  return gateway;
}

const heard = new WeakMap<VirtualGateway, { name: string; body: any }[]>();

/** Lets an engine answer at a backend, and remembers what it is asked. */
export function serve(gateway: VirtualGateway, name: string, engine: Engine): void {
  const bodies = heard.get(gateway) ?? [];
  heard.set(gateway, bodies);
  gateway.engines.set(`http://${name}:1`, (served) => {
    bodies.push({ name, body: JSON.parse(String(served.request.body)) });
    engine(served);
  });
}

export function config(
  stages: object,
  more: { deadline?: string; tenants?: object; vectors?: object } = {},
): object {
  const openai = (name: string) => ({
    engine: 'openai',
    model: `m-${name}`,
    endpoints: [`http://${name}:1/v1`],
  });
  const targets = (backend: string) => ({ targets: [{ backend }], deadline: '30s' });
  return {
    backends: {
      chat: openai('chat'),
      other: openai('other'),
      vectors: { ...openai('vectors'), ...more.vectors },
      tensors: { engine: 'triton', model: 'm-tensors', endpoints: ['http://tensors:1'] },
    },
    routes: {
      chat: targets('chat'),
      other: targets('other'),
      vectors: targets('vectors'),
      tensors: targets('tensors'),
    },
    pipelines: { search: { deadline: more.deadline ?? '2s', stages } },
    ...(more.tenants && { tenants: more.tenants }),
  };
}

type Said = string | object | undefined;

/** Answers a chat as `say` says of its last message: a text, a whole document, or, with undefined, an error. */
export function chats(say: (text: string) => Said, afterMs = 10): Engine {
  return answering(afterMs, (body) => {
    const said = say(String(body.messages.at(-1).content));
    if (typeof said !== 'string') return said;
    return {
      choices: [{ index: 0, message: { role: 'assistant', content: said }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    };
  });
}

/** The vector of a text says how often it has each of these words. */
const WORDS = ['rain', 'sun', 'train', 'rome'];
const vectorOf = (text: string): number[] =>
  WORDS.map((word) => text.toLowerCase().split(word).length - 1 + 0.01);

export function vectors(model = 'm-vectors', afterMs = 10): Engine {
  return answering(afterMs, ({ input }) => ({
    object: 'list',
    model,
    data: (Array.isArray(input) ? input : [input]).map((text: string, index: number) => ({
      object: 'embedding',
      index,
      embedding: vectorOf(text),
    })),
    usage: { prompt_tokens: 2 * [input].flat().length, total_tokens: 2 * [input].flat().length },
  }));
}

export function tensors(
  outputsOf: (inputs: { name: string; data: unknown[] }[]) => object[] | undefined,
): Engine {
  return answering(10, ({ inputs }) => {
    const outputs = outputsOf(inputs);
    return outputs && { model_name: 'm-tensors', outputs };
  });
}

/** Answers what `answer` makes of the request's JSON; undefined is an error. */
export function answering(afterMs: number, answer: (body: any) => object | undefined): Engine {
  return (served) => {
    const document = answer(JSON.parse(String(served.request.body)));
    const error = { error: { message: 'broken' } };
    status(document ? 200 : 500, document ?? error, {}, afterMs)(served);
  };
}

export const asked = (gateway: VirtualGateway, name: string): any[] =>
  heard.get(gateway)!.flatMap((each) => (each.name === name ? [each.body] : []));

export const textOf = (caller: VirtualCaller): string => JSON.parse(caller.text).choices[0].message.content;

export const codes = (gateway: VirtualGateway): string[] =>
  gateway.records
    .at(-1)!
    .steps.filter(({ what }) => what === 'stage')
    .map(({ code, stage }) => `${stage} ${code}`);
