import { chatAnswer, VirtualGateway } from './virtual-gateway.ts';

/** What is sent of a conversation to backends with different windows, on counts by bytes: no files are needed here. */

export const [A, B, C] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000', 'http://10.0.0.3:8000'];

export function world(
  more: { a?: object; b?: object; route?: object; backends?: object; routes?: object } = {},
) {
  const gateway = new VirtualGateway({
    backends: {
      small: {
        engine: 'vllm',
        model: 's',
        endpoints: [`${A}/v1`],
        limits: { concurrency: 1 },
        context: { window: 800, reserve: 100 },
        ...more.a,
      },
      large: {
        engine: 'vllm',
        model: 'l',
        endpoints: [`${B}/v1`],
        context: { window: 4000, reserve: 100 },
        ...more.b,
      },
      ...more.backends,
    },
    routes: {
      chat: {
        targets: [{ backend: 'small' }],
        context: { fit: true, keep: { first: 0, last: 1 } },
        ...more.route,
      },
      ...more.routes,
    },
  });
  for (const origin of [A, B, C]) gateway.engines.set(origin, chatAnswer('fine'));
  return gateway;
}

export const turn = (at: number, more = {}) => [
  { role: 'user', content: `question ${at} ${'.'.repeat(80)}`, ...more },
  { role: 'assistant', content: `answer ${at} ${'.'.repeat(60)}` },
];
export const chatOf = (turns: number, more = {}) => [
  { role: 'system', content: 'Be short.' },
  ...turn(0, more),
  ...Array.from({ length: turns - 1 }, (_, at) => turn(at + 1)).flat(),
  { role: 'user', content: 'and now?' },
];

export const sentTo = (gateway: VirtualGateway, at = -1) =>
  JSON.parse(String(gateway.served.at(at)!.request.body));
export const codes = (gateway: VirtualGateway) => gateway.records.at(-1)!.steps.map(({ code }) => code);
export const stepOf = (gateway: VirtualGateway, code: string) =>
  gateway.records.at(-1)!.steps.find((step) => step.code === code)!;
