import { describe, expect, it, test } from 'vitest';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

/** A route of two targets, edge and large, with these rules. */
function loaded(rules: string, { large = 'tier: large', more = '' } = {}) {
  const text = `backends:
  small: { engine: vllm, model: s, endpoints: ["http://a/v1"], tier: edge, price: { in: 1 } }
  big: { engine: vllm, model: b, endpoints: ["http://b/v1"]${large && `, ${large}`} }
routes:
  chat: { targets: [{ backend: small }, { backend: big }], tiers: ${rules} }
${more}`;
  return loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text }));
}

test.each([
  ['[{ tier: edge }]'],
  ['[{ tier: asked, when: { priority: [critical, interactive] } }, { tier: large }]'],
  ['[{ tier: edge, when: { promptTokensMax: 500, load: { large: 0.8 } }, waitMax: 5s }, { tier: cheapest }]'],
])('is taken: %s', (rules) => {
  expect(loaded(rules).ok).toBe(true);
});

test.each([
  ['[{ tier: lagre }]', {}, 'routes.chat.tiers[0].tier: there is no tier of its targets "lagre"', 'large'],
  [
    '[{ tier: edge, when: { load: { hug: 1 } } }]',
    {},
    'routes.chat.tiers[0].when.load.hug: there is no tier of its targets "hug"',
    'edge, large',
  ],
  [
    '[{ tier: edge, when: { promptTokensMin: 9, promptTokensMax: 8 } }]',
    {},
    'routes.chat.tiers[0].when.promptTokensMin: no prompt has 9 tokens at least and 8 at most',
    '',
  ],
  [
    '[{ tier: edge }]',
    { large: '' },
    'routes.chat.targets[1].backend: the backend "big" stands in no tier, so that no rule could send anything to it',
    'backends.big',
  ],
  [
    '[{ tier: edge }]',
    { large: 'tier: cheapest' },
    'backends.big.tier: "cheapest" has a meaning of its own in the rules of routes',
    'another name',
  ],
  [
    '[{ tier: edge }]',
    { more: 'tenants: { web: { tier: egde } }' },
    'tenants.web.tier: there is no tier "egde"',
    'edge',
  ],
])('is refused: %s', (rules, more, fault, hint) => {
  const found = loaded(rules, more);
  expect(found.ok).toBe(false);
  const faults = found.ok ? [] : found.faults;
  expect(faults.map(({ path, message }) => `${path}: ${message}`)).toEqual([fault]);
  expect(faults[0]!.hint ?? '').toContain(hint);
});

describe('what looks wrong', () => {
  const noticed = (rules: string, more = {}) => {
    const found = loaded(rules, more);
    if (!found.ok) throw new Error(found.faults.map(({ message }) => message).join());
    return found.config.notices.flatMap(({ path }) => (path?.includes('tiers') ? [path] : []));
  };

  it('is a target without a price, where prices are compared', () => {
    expect(noticed('[{ tier: cheapest }]')).toEqual(['routes.chat.tiers[0].tier']);
    expect(noticed('[{ tier: cheapest }]', { large: 'tier: large, price: { in: 2 }' })).toEqual([]);
  });

  it('is one tier alone', () => {
    expect(noticed('[{ tier: edge }]', { large: 'tier: edge' })).toEqual(['routes.chat.tiers']);
  });
});
