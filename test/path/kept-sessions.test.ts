import { describe, expect, it } from 'vitest';
import { config, gateway, json, ONE } from './sessions-world.ts';
import { chatAnswer, failing, NOTHING, never } from './virtual-gateway.ts';

describe('a session', () => {
  const sticky = { affinity: 'session', targets: [{ backend: 'b1' }, { backend: 'b2' }] };

  it('stays with the backend that answered its first turn', async () => {
    const it = gateway(chatAnswer('Hello'), sticky);
    const homes = new Set<string>();
    for (let tree = 0; tree < 8; tree++) {
      let previous: string | null = null;
      const answered = new Set<string>();
      for (let turn = 0; turn < 6; turn++) {
        const caller = await it.turn({ previous_response_id: previous });
        answered.add(caller.answerHeader('x-armature-backend')!);
        previous = json(caller).id;
      }
      expect(answered.size).toBe(1);
      homes.add([...answered][0]!);
    }
    expect(homes.size).toBe(2);
    expect(it.events('session-moved')).toEqual([]);
  });

  it.each([
    ['weight-zero', { ...sticky, targets: [{ backend: 'b1', weight: 0 }, { backend: 'b2' }] }],
    ['target-removed', { ...sticky, targets: [{ backend: 'b2' }] }],
    [
      'no-affinity',
      {
        targets: [
          { backend: 'b1', weight: 1 },
          { backend: 'b2', weight: 10_000 },
        ],
      },
    ],
  ])('that moves tells whence and why: %s', async (reason, route) => {
    const it = gateway(chatAnswer('Hello'), { ...sticky, targets: [{ backend: 'b1' }] });
    const { id } = json(await it.call('POST', '/v1/conversations'));
    await it.turn({ conversation: id });
    it.load(config(route));
    await it.turn({ conversation: id });
    expect(it.events('session-moved')).toMatchObject([
      {
        subject: `session:${id}`,
        causes: [expect.stringMatching(/^req_/)],
        data: { from: 'b1', to: 'b2', reason },
      },
    ]);
  });

  it('that moves as its backend is unwell says so', async () => {
    const it = gateway(chatAnswer('Hello'), { ...sticky, targets: [{ backend: 'b1' }] });
    const first = json(await it.turn({}));
    it.load(config(sticky));
    it.engines.set(ONE, failing());
    let previous = first.id;
    for (let turn = 0; turn < 8; turn++)
      previous = json(await it.turn({ previous_response_id: previous })).id ?? previous;
    const moves = it.events('session-moved').map(({ data }) => data['reason']);
    expect(
      moves.every((reason) => ['attempt-failed', 'endpoints-unwell', 'weights'].includes(String(reason))),
    ).toBe(true);
  });

  it('is written by one at a time, and free after whoever left, failed or ran out of time', async () => {
    const it = gateway(never);
    const { id } = json(await it.call('POST', '/v1/conversations'));
    const write = () => it.send('POST', '/v1/responses', { model: 'chat', input: 'x', conversation: id });
    for (const end of ['leaves', 'late', 'drained'] as const) {
      const first = write();
      await it.time.advance(10);
      const second = write();
      await it.time.advance(10);
      expect([second.status, json(second).error.code]).toEqual([409, 'conflict']);
      const item = await it.send('POST', `/v1/conversations/${id}/items`, {
        items: [{ role: 'user', content: 'x' }],
      });
      await it.time.advance(10);
      expect(item.status).toBe(409);
      if (end === 'leaves') first.leave();
      else if (end === 'late') await it.time.advance(10_000);
      else it.path.endAll();
      await it.time.advance(10);
    }
    it.engines.set(ONE, chatAnswer('Hello'));
    expect((await it.turn({ conversation: id })).status).toBe(200);
    expect(it.taken).toEqual(NOTHING);
    expect(it.time.pending).toBe(0);
  });

  it('is held for as long as its turn takes', async () => {
    const it = gateway(chatAnswer('Hello', 100_000), { deadline: '200s' });
    const { id } = json(await it.call('POST', '/v1/conversations'));
    const first = it.send('POST', '/v1/responses', { model: 'chat', input: 'x', conversation: id });
    for (let at = 0; at < 9; at++) expect((await it.turn({ conversation: id })).status).toBe(409);
    await it.time.advance(20_000);
    expect(first.status).toBe(200);
  });

  it('whose turn was removed while it was answered keeps nothing of it', async () => {
    const it = gateway();
    const first = json(await it.turn({}));
    it.engines.set(ONE, chatAnswer('Hello', 1000));
    const second = it.send('POST', '/v1/responses', {
      model: 'chat',
      input: 'x',
      previous_response_id: first.id,
    });
    await it.time.advance(10);
    await it.store.removeResponse({ tenant: 'open', id: first.id });
    await it.time.advance(2000);
    expect([second.status, json(second).error.code]).toEqual([409, 'conflict']);
    expect(await it.store.list({ limit: 10 })).toEqual([]);
  });
});
