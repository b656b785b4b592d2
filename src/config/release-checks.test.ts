import { expect, test } from 'vitest';
import { formatFaults } from './faults.ts';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

const faultsOf = (release: string): string => {
  const file = `
backends:
  old: { engine: vllm, model: m, endpoints: ["http://old/v1"] }
  tensors: { engine: triton, model: m, endpoints: ["http://tensors"] }
routes: { chat: { targets: [{ backend: old }], release: ${release} } }
`;
  const loaded = loadConfig('/a.yaml', filesInMemory({ '/a.yaml': file }));
  return loaded.ok ? '' : formatFaults(loaded.faults);
};

test('settings of releases that fit together are taken', () => {
  expect(faultsOf('{}')).toBe('');
  expect(faultsOf('{ plan: auto, shadow: 20, metrics: [errors, quality], baseline: old }')).toBe('');
  expect(faultsOf('{ plan: [5, 50, 100], deadline: 21min }')).toBe('');
  expect(faultsOf('{ plan: auto, deadline: 11min }')).toBe('');
});

test.each([
  ['{ plan: [5, 5, 100] }', 'has to be larger'],
  ['{ plan: [5, 50] }', 'the last step has to be 100'],
  ['{ plan: [100] }', 'a step below 100'],
  ['{ plan: [0, 100] }', 'expected a percentage'],
  ['{ plan: soon }', 'expected auto or percentages'],
  ['{ deadline: 30min }', 'do not fit'],
  [
    '{ phases: { canary: 30min } }',
    'phases.canary: the steps of its plan, which last 40m at least, do not fit into a deadline of 30m',
  ],
  ['{ plan: [5, 50, 100], deadline: 20min }', 'last 20m at least, do not fit'],
  ['{ plan: auto, deadline: 10min }', 'last 10m at least, do not fit'],
  ['{ alpha: 1 }', 'above 0 and below 1'],
  ['{ metrics: [quality] }', 'shadow is 0'],
  ['{ shadow: 20, compare: { by: exact, margin: 1 } }', 'lets everything through'],
  ['{ metrics: [speed] }', 'expected some of'],
  ['{ baseline: older }', 'there is no backend "older"'],
  ['{ baseline: tensors }', 'another protocol'],
  ['{ step: { sessionsMax: 1 } }', 'sessionsMax'],
])('%s is refused', (release, says) => {
  expect(faultsOf(release)).toContain(says);
});
