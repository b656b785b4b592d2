import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { drawServegen, readWindows } from './servegen.ts';

const folder = mkdtempSync(join(tmpdir(), 'armature-servegen-'));
afterAll(() => rmSync(folder, { recursive: true }));
const HEAD = 'client,t_s,rate,iat_cv,pattern,arg1,arg2';
const file = join(folder, 'model_windows.csv');
// Means of the gaps: 0.5 * 1 s, and for a Weibull of shape 1 its scale.
writeFileSync(file, [HEAD, '3,0,2,1.4,Gamma,0.5,1', '7,600,4,1,Weibull,1,0.25'].join('\n'));
writeFileSync(
  join(folder, 'model_client3_tokens.json'),
  JSON.stringify({
    0: { input_tokens: '{10: 0.25, 20: 0.75}', output_tokens: '{5: 1.0}', reason_ratio: '{}' },
    21600: { input_tokens: '{}', output_tokens: '{}', reason_ratio: '{}' },
  }),
);

describe('requests drawn from distributions', () => {
  const rows = drawServegen(file, 0, 1_200_000, 1);
  if (typeof rows !== 'object') throw new Error(String(rows));

  it('come at the rates of their windows, by client', () => {
    const count = (client: string) => rows.filter((row) => row.client === client).length;
    expect(Math.abs(count('client-3') - 1200)).toBeLessThan(200);
    expect(Math.abs(count('client-7') - 2400)).toBeLessThan(250);
    expect(rows.every(({ atMs, client }) => (client === 'client-3' ? atMs < 600_000 : atMs >= 600_000))).toBe(
      true,
    );
    expect(rows.map(({ atMs }) => atMs)).toEqual(rows.map(({ atMs }) => atMs).toSorted((a, b) => a - b));
  });

  it('have the lengths that they are said to have; of who has none, those of others', () => {
    const long = rows.filter(({ promptTokens }) => promptTokens === 20).length / rows.length;
    expect(Math.abs(long - 0.75)).toBeLessThan(0.03);
    expect(
      rows.every(({ promptTokens, outputTokens }) => [10, 20].includes(promptTokens) && outputTokens === 5),
    ).toBe(true);
  });

  it('are the same in a part of the time', () => {
    const part = drawServegen(file, 700_000, 100_000, 1);
    const same = rows.filter(({ atMs }) => atMs >= 700_000 && atMs < 800_000);
    expect(part).toEqual(same.map((row) => ({ ...row, atMs: row.atMs - 700_000 })));
  });
});

it.each([
  ['a,b\n1,2', 'the first line must be'],
  [`${HEAD}\n1,2,3,4,Normal,1,1`, 'line 2 is no window'],
  [`${HEAD}\n`, 'no windows'],
])('says what is wrong with %j', (text, message) => expect(readWindows(text)).toContain(message));

it('leaves other files alone, and says where tokens are missing', () => {
  expect(drawServegen(join(folder, 'trace.csv'), 0, 1, 1)).toBeUndefined();
  const bare = join(folder, 'bare_windows.csv');
  writeFileSync(bare, [HEAD, '3,0,2,1.4,Gamma,0.5,1'].join('\n'));
  expect(drawServegen(bare, 0, 1000, 1)).toContain('tokens.json beside it');
  expect(drawServegen(file, 9e9, 1000, 1)).toContain('nothing comes');
});
