import { describe, expect, it } from 'vitest';
import { answering, asked, chats, codes, open, tensors, textOf } from './flow-world.ts';
import { chatStream, NOTHING, never, type VirtualGateway } from './virtual-gateway.ts';

const say = (content: string) => ({ model: 'search', messages: [{ role: 'user', content }] });

function idle(gateway: VirtualGateway): void {
  expect(gateway.taken).toEqual(NOTHING);
  expect(gateway.time.pending).toBe(0);
}

describe('a condition', () => {
  const stages = {
    intent: { route: 'chat', input: 'class of {{ request.text }}', classes: ['weather', 'travel'] },
    rain: {
      route: 'chat',
      after: ['intent'],
      when: 'stages.intent.class == "weather"',
      input: 'weather: {{ request.text }}',
    },
    trip: {
      route: 'other',
      after: ['intent'],
      when: 'stages.intent.class == "travel"',
      input: 'travel: {{ request.text }}',
    },
    answer: { first: ['rain', 'trip'] },
  };

  it('decides which of two stages answers', async () => {
    const gateway = open(stages, {
      chat: chats((text) =>
        text.startsWith('class') ? (text.includes('rain') ? 'It is **Weather**.' : 'travel') : `c<${text}>`,
      ),
      other: chats((text) => `o<${text}>`),
    });
    const one = gateway.chat(say('will it rain?'));
    await gateway.time.advance(100);
    expect(textOf(one)).toBe('c<weather: will it rain?>');
    expect(one.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(asked(gateway, 'other')).toHaveLength(0);
    expect(codes(gateway)).toContain('trip stage-not-run');
    const two = gateway.chat(say('to Rome'));
    await gateway.time.advance(100);
    expect(textOf(two)).toBe('o<travel: to Rome>');
    expect(two.answerHeader('x-armature-backend')).toBe('other');
    idle(gateway);
  });

  it('fails the stage that gives no class, and takes its way out', async () => {
    const failing = open(stages, { chat: chats(() => 'weather or travel, who knows'), other: never });
    const caller = failing.chat(say('x'));
    await failing.time.advance(100);
    expect(caller.status).toBe(502);
    expect(caller.text).toContain("Stage 'intent'");
    idle(failing);
    const out = open(
      { ...stages, intent: { ...stages.intent, onFailure: { use: 'travel' } } },
      { chat: chats(() => 'neither'), other: chats((text) => text) },
    );
    const answered = out.chat(say('x'));
    await out.time.advance(100);
    expect(textOf(answered)).toBe('travel: x');
    expect(answered.answerHeader('x-armature-degraded')).toBe('intent:use');
    idle(out);
  });

  it('that speaks of what is not there does not hold', async () => {
    const gateway = open(
      {
        intent: {
          route: 'tensors',
          tensors: { t: { data: '{{ request.text }}' } },
          labels: ['no', 'yes'],
          onFailure: { use: 'yes' },
        },
        sure: { route: 'chat', after: ['intent'], when: 'stages.intent.score > 0.5', input: 'sure' },
        end: { route: 'other', after: ['sure'], input: '[{{ sure }}] {{ stages.intent.class }}' },
      },
      { tensors: tensors(() => undefined), chat: never, other: chats((text) => text) },
    );
    const caller = gateway.chat(say('x'));
    await gateway.time.advance(200);
    expect(textOf(caller)).toBe('[] yes');
    idle(gateway);
  });

  it('lets the chosen stage stream, and cancels what nobody asks for any more', async () => {
    const gateway = open(
      {
        slow: { route: 'other', when: 'request.text == "slow"', input: 'x', stream: true },
        fast: { route: 'chat', input: 'y', stream: true },
        late: { route: 'other', input: 'z', stream: true },
        answer: { first: ['slow', 'fast', 'late'] },
      },
      { chat: chatStream(['one ', 'two ']), other: never },
    );
    const caller = gateway.chat({ ...say('quick'), stream: true });
    await gateway.time.advance(12);
    expect(caller.text).toContain('one');
    expect(caller.text).not.toContain('[DONE]');
    await gateway.time.advance(100);
    expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([false, true]);
    expect(codes(gateway)).toContain('late stage-cancelled');
    idle(gateway);
  });

  it('passes the words of a chosen stage on whole: tool calls and usage with them', async () => {
    const message = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    };
    const gateway = open(
      {
        a: { route: 'chat', input: 'x' },
        b: { route: 'other', after: ['a'], when: 'not a', input: 'y' },
        c: { first: ['a', 'b'] },
      },
      {
        chat: chats(() => 'hello'),
        other: chats(() => ({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })),
      },
    );
    const caller = gateway.chat({ ...say('x'), temperature: 0.3 });
    await gateway.time.advance(100);
    expect(JSON.parse(caller.text).usage).toMatchObject({ completion_tokens: 2 });
    expect(asked(gateway, 'chat')[0]).toMatchObject({ temperature: 0.3 });
    idle(gateway);
  });

  it('where none has a text, is a clear error', async () => {
    const gateway = open(
      { a: { route: 'chat', when: 'false', input: 'x' }, b: { first: ['a'] } },
      { chat: never },
    );
    const caller = gateway.chat(say('x'));
    await gateway.time.advance(10);
    expect(caller.status).toBe(502);
    expect(caller.text).toContain("Stage 'b'");
    idle(gateway);
  });
});

describe('a stage for each item', () => {
  const each = (more: object = {}) => ({
    sums: {
      route: 'chat',
      each: 'request.body.documents',
      input: '{{ loop.index }}/{{ loop.length }} {{ item }}',
      ...more,
    },
    end: {
      route: 'other',
      after: ['sums'],
      input: '{% for s in stages.sums.items %}{{ s.id }}={{ s.text }};{% endfor %}',
    },
  });
  const documents = (count: number) => Array.from({ length: count }, (_, i) => ({ id: i, text: `doc ${i}` }));

  it('asks a few at once, and keeps the order', async () => {
    let now = 0;
    let most = 0;
    const gateway = open(each({ concurrency: 3 }), {
      chat: (served) => {
        now++;
        most = Math.max(most, now);
        const text = String(JSON.parse(String(served.request.body)).messages[0].content);
        served.time.set(text.startsWith('1/') ? 50 : 10, () => {
          now--;
          answering(1, () => ({ choices: [{ message: { content: `<${text}>` } }] }))(served);
        });
      },
      other: chats((text) => text),
    });
    const caller = gateway.chat({ ...say('x'), documents: documents(7) });
    await gateway.time.advance(500);
    expect(textOf(caller)).toBe(
      documents(7)
        .map(({ id }) => `${id}=<${id + 1}/7 doc ${id}>;`)
        .join(''),
    );
    expect(most).toBe(3);
    expect(gateway.records).toHaveLength(1);
    idle(gateway);
  });

  it('takes texts and lines as well, and an empty list', async () => {
    const gateway = open(
      {
        sums: { route: 'chat', each: 'request.text.split("\n")', input: '{{ item.text }}' },
        end: { route: 'other', after: ['sums'], input: '{{ sums }}' },
      },
      { chat: chats((text) => text.toUpperCase()), other: chats((text) => text) },
    );
    const caller = gateway.chat(say('a\nb {{ 7 * 7 }}'));
    await gateway.time.advance(100);
    expect(textOf(caller)).toBe('A\nB {{ 7 * 7 }}');
    const none = open(each(), { chat: never, other: chats((text) => `[${text}]`) });
    const empty = none.chat({ ...say('x'), documents: [] });
    await none.time.advance(100);
    expect(textOf(empty)).toBe('[]');
    idle(none);
  });

  it('goes by onFailure for each of them', async () => {
    const broken = chats((text) => (text.includes('doc 1') ? undefined : text));
    for (const [onFailure, text, label] of [
      ['skip', '0=1/3 doc 0;2=3/3 doc 2;', 'sums:skip'],
      [{ use: 'none' }, '0=1/3 doc 0;1=none;2=3/3 doc 2;', 'sums:use'],
      [{ route: 'other' }, '0=1/3 doc 0;1=2/3 doc 1;2=3/3 doc 2;', 'sums:route'],
    ] as const) {
      const gateway = open(each({ onFailure }), { chat: broken, other: chats((said) => said) });
      const caller = gateway.chat({ ...say('x'), documents: documents(3) });
      await gateway.time.advance(2000);
      expect(textOf(caller)).toBe(text);
      expect(caller.answerHeader('x-armature-degraded')).toBe(label);
      expect(codes(gateway)).toContain('sums item-failed');
      idle(gateway);
    }
    const gateway = open(each(), { chat: broken, other: never });
    const caller = gateway.chat({ ...say('x'), documents: documents(40) });
    await gateway.time.advance(2000);
    expect(caller.status).toBe(502);
    expect(caller.text).toContain("Stage 'sums'");
    expect(asked(gateway, 'chat').length).toBeLessThan(20);
    idle(gateway);
  });

  it('that is cut at its budget keeps what it has', async () => {
    const gateway = open(each({ budget: '100ms', concurrency: 1, onFailure: 'skip' }), {
      chat: chats((text) => text, 40),
      other: chats((text) => text),
    });
    const caller = gateway.chat({ ...say('x'), documents: documents(1000) });
    await gateway.time.advance(150);
    expect(textOf(caller)).toBe('0=1/1000 doc 0;1=2/1000 doc 1;');
    expect(gateway.records.at(-1)!.steps.length).toBeLessThan(300);
    idle(gateway);
  });

  it("of what the caller has not sent is the caller's fault, and more than can be is refused", async () => {
    const gateway = open(each(), { chat: never, other: never });
    const without = gateway.chat(say('x'));
    const strange = gateway.chat({ ...say('x'), documents: [{ title: 1 }] });
    const many = gateway.chat({ ...say('x'), documents: documents(3000) });
    await gateway.time.advance(10);
    for (const caller of [without, strange, many]) {
      expect(caller.status).toBe(400);
      expect(caller.text).toContain('`each`');
    }
    idle(gateway);
  });

  it('lets every engine go when the caller leaves', async () => {
    const gateway = open(each(), { chat: never, other: never });
    const caller = gateway.chat({ ...say('x'), documents: documents(9) });
    await gateway.time.advance(10);
    expect(gateway.served).toHaveLength(4);
    caller.leave();
    expect(gateway.served.every(({ aborted }) => aborted)).toBe(true);
    idle(gateway);
  });
});
