import fc from 'fast-check';
import { Gauge, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { samplesOf } from './samples.ts';

const plain = (page: string, name = 'm') =>
  samplesOf(page, name).map(({ labels, value }) => [Object.fromEntries(labels), value]);

describe('the samples of a metric', () => {
  it('are read back as a client of Prometheus writes them, whatever is in their labels', async () => {
    const series = fc.record({ label: fc.string({ unit: 'grapheme' }), value: fc.double({ noNaN: true }) });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(series, { selector: ({ label }) => label, maxLength: 5 }),
        async (all) => {
          const registry = new Registry();
          const gauge = new Gauge({
            name: 'engine:waiting',
            help: 'a\nb',
            labelNames: ['model', 'x'],
            registers: [registry],
          });
          for (const { label, value } of all) gauge.set({ model: label, x: '1' }, value);
          const read = samplesOf(await registry.metrics(), 'engine:waiting');
          expect(read.map(({ labels, value }) => [labels.get('model'), labels.get('x'), value])).toEqual(
            all.map(({ label, value }) => [label, '1', value + 0]),
          );
        },
      ),
    );
  });

  it.each([
    ['m 1', [[{}, 1]]],
    ['m{} 2\n', [[{}, 2]]],
    ['# TYPE m gauge\nm 1.5e3 1700000000000\r\n', [[{}, 1500]]],
    ['m{a="b",} 3 # {trace="x"} 1\n', [[{ a: 'b' }, 3]]],
    ['m { a = "b" } 3', []],
    ['m{ a = "b" , c="d" } 3', [[{ a: 'b', c: 'd' }, 3]]],
    ['m{a="x\\"y\\\\z\\n"} 4', [[{ a: 'x"y\\z\n' }, 4]]],
    [
      'm +Inf\nm -Inf',
      [
        [{}, Number.POSITIVE_INFINITY],
        [{}, Number.NEGATIVE_INFINITY],
      ],
    ],
    ['m NaN\nm nan', []],
    ['m_total 1\nxm 2\n m 3\n# m 4\nm', []],
    ['m{a="b" 5\nm 6', [[{}, 6]]],
    ['m five\nm 5 6 7\nm 0x10\nm 8', [[{}, 8]]],
    ['m{a="m 9\nm 10', [[{}, 10]]],
    ['', []],
  ])('%j', (page, samples) => {
    expect(plain(page)).toEqual(samples);
  });

  it('of any text are found or not, and nothing is thrown', () => {
    const junk = fc.string({
      unit: fc.constantFrom('m', '{', '}', '"', '\\', '\n', ' ', '1', '=', ',', 'a', '#'),
    });
    fc.assert(
      fc.property(junk, (page) => {
        for (const { value } of samplesOf(page, 'm')) expect(value).not.toBeNaN();
      }),
      { numRuns: 2000 },
    );
  });
});
