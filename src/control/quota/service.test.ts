import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { ControlToGateway } from '../../links/messages.ts';
import { QuotaService } from './service.ts';

describe('control and its rates', () => {
  const peer = { boot: 'w0', send: () => true };
  const service = () => {
    const made = new QuotaService(new VirtualTime());
    made.swap(settingsSchema.parse({ tenants: { web: { limits: { requests: '5/s' } } } }).tenants);
    return made;
  };

  it.each([
    { type: 'quota-ask', ask: 1, keys: ['|web|requests'], amounts: [] },
    { type: 'quota-ask', ask: 1, keys: ['|web|requests'], amounts: [-1] },
    { type: 'quota-ask', ask: 1, keys: Array(5).fill('|web|requests'), amounts: Array(5).fill(1) },
    { type: 'quota-used', used: { '|web|requests': null } },
    { type: 'quota-known', levels: { '|web|requests': 'x' } },
  ])('refuse what makes no sense: %j', (message) => {
    expect(() => service().heard(peer, message as never)).toThrow();
  });

  it('limit nothing where they know of no limit', () => {
    const answers: ControlToGateway[] = [];
    const made = service();
    made.heard(
      { boot: 'w0', send: (message) => answers.push(message) > 0 },
      { type: 'quota-ask', ask: 7, keys: ['|gone|requests'], amounts: [1] },
    );
    made.heard(peer, { type: 'quota-used', used: { '|gone|requests': 1 } });
    expect(answers).toEqual([{ type: 'quota-answer', ask: 7, granted: true, levels: [null] }]);
  });

  it('keep their share when the limit changes, and tell those that were refused', () => {
    const heard: ControlToGateway[] = [];
    const asking = { boot: 'w0', send: (message: ControlToGateway) => heard.push(message) > 0 };
    const made = service();
    const ask = (asked: number) =>
      made.heard(asking, { type: 'quota-ask', ask: 1, keys: ['|web|requests'], amounts: [asked] });
    ask(4);
    ask(2);
    made.swap(settingsSchema.parse({ tenants: { web: { limits: { requests: '50/s' } } } }).tenants);
    expect(heard).toEqual([
      { type: 'quota-answer', ask: 1, granted: true, levels: [1] },
      { type: 'quota-answer', ask: 1, granted: false, levels: [1] },
      { type: 'quota-level', key: '|web|requests', level: 10 },
    ]);
    made.left(asking);
    made.swap(undefined);
    expect(made.levels().size).toBe(0);
  });

  it('believe workers while they are young, or where nobody has asked', () => {
    const time = new VirtualTime();
    const made = new QuotaService(time);
    const { tenants } = settingsSchema.parse({ tenants: { web: { limits: { requests: '100/d' } } } });
    made.swap(tenants);
    const known = (level: number) =>
      made.heard(peer, { type: 'quota-known', levels: { '|web|requests': level } });
    const level = () => Math.round(made.levels().get('|web|requests')!);
    known(60);
    known(80);
    made.heard(peer, { type: 'quota-ask', ask: 1, keys: ['|web|requests'], amounts: [10] });
    expect(level()).toBe(50);
    return time.advance(6000).then(() => {
      known(5);
      expect(level()).toBe(50);
    });
  });
});
