import { describe, expect, it } from 'vitest';
import { memoryStore } from '../../store/memory/index.ts';
import { Predictions } from './predictions.ts';

const seen = (request: string, requestId?: string) => ({
  route: 'chat',
  backend: 'b1',
  model: 'm',
  request,
  values: {},
  score: 0.5,
  ...(requestId !== undefined && { requestId }),
});

async function kept(documents: ReturnType<typeof memoryStore>['documents']): Promise<Predictions> {
  const predictions = new Predictions(documents);
  await predictions.load();
  return predictions;
}

describe('predictions that wait for labels', () => {
  it('are found by the id of a caller that gave it twice: the newest', async () => {
    const predictions = await kept(memoryStore().documents);
    predictions.add(seen('req_1', 'mine'));
    predictions.add(seen('req_2', 'mine'));
    expect(predictions.take('req_1')?.request).toBe('req_1');
    expect(predictions.take('mine')?.request).toBe('req_2');
    expect(predictions.take('mine')).toBeUndefined();
  });

  it('are stored after another control wrote last, and the oldest go, also where that fails at first', async () => {
    const { documents } = memoryStore();
    const before = await kept(documents);
    for (let i = 0; i < 20_000; i++) before.add(seen(`req_${i}`));
    await before.store();
    const now = await kept(documents);
    expect(before.take('req_19999')).toBeDefined();
    await before.store();
    for (let i = 20_000; i < 22_000; i++) now.add(seen(`req_${i}`));
    now.take('req_19998');
    await expect(now.store()).rejects.toThrow('has changed');
    await now.store();
    const after = await kept(documents);
    expect(await documents.list('drift-predictions', 100)).toHaveLength(20);
    expect(['req_0', 'req_1999', 'req_19998'].map((id) => after.take(id))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(['req_2000', 'req_21999'].map((id) => after.take(id)?.request)).toEqual(['req_2000', 'req_21999']);
  });
});
