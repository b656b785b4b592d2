import { chatAnswer, type Engine, VirtualGateway } from './virtual-gateway.ts';

export const origins = ['http://r1:1', 'http://r2:1', 'http://r3:1', 'http://r4:1'];

/** A pipeline over the routes r1 to r4, each with an engine of its own. */
export function config(stages: object, more: { deadline?: string; routes?: Record<string, object> } = {}) {
  return {
    backends: Object.fromEntries(
      origins.map((origin, i) => [
        `b${i + 1}`,
        { engine: 'openai', model: `m${i + 1}`, endpoints: [`${origin}/v1`] },
      ]),
    ),
    routes: Object.fromEntries(
      origins.map((_, i) => [
        `r${i + 1}`,
        { targets: [{ backend: `b${i + 1}` }], deadline: '30s', ...more.routes?.[`r${i + 1}`] },
      ]),
    ),
    pipelines: { search: { deadline: more.deadline ?? '2s', stages } },
  };
}

export const user = (content: string) => [{ role: 'user', content }];

/** Says what it was asked, in capitals. */
export const echo =
  (afterMs = 10): Engine =>
  (served) => {
    const { messages } = JSON.parse(String(served.request.body));
    chatAnswer(`<${messages.map((each: { content: string }) => each.content).join('|')}>`, afterMs)(served);
  };

export function open(stages: object, engines: (Engine | undefined)[], more?: Parameters<typeof config>[1]) {
  const gateway = new VirtualGateway(config(stages, more));
  for (const [i, engine] of engines.entries()) if (engine) gateway.engines.set(origins[i]!, engine);
  return gateway;
}

export const textOf = (caller: { text: string }) => JSON.parse(caller.text).choices[0].message.content;
