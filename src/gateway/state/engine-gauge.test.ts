import { describe, expect, it } from 'vitest';
import { EngineGauge } from './engine-gauge.ts';

describe("what an engine tells of others' requests", () => {
  it('is what this worker had not sent itself at any time since the reading before', () => {
    const gauge = new EngineGauge();
    expect(gauge.others(0)).toBeUndefined();
    gauge.sent(8);
    gauge.read({ waiting: 4, running: 16 }, 2, 1000);
    expect(gauge.others(1000)).toBe(12);
    gauge.read({ waiting: 0, running: 1 }, 0, 2000);
    expect(gauge.others(2000)).toBe(0);
    gauge.read({ waiting: 0, running: 3 }, 0, 3000);
    expect(gauge.others(3000)).toBe(3);
  });

  it('is not known where the gauges are missing or old', () => {
    const gauge = new EngineGauge();
    gauge.read({ cacheUsed: 0.5 }, 0, 0);
    expect(gauge.others(0)).toBeUndefined();
    gauge.read({ running: 7, ageMs: 4000 }, 0, 5000);
    expect([gauge.others(5000), gauge.others(6000), gauge.others(6001)]).toEqual([7, 7, undefined]);
    gauge.read({ waiting: 2 }, 0, 7000);
    expect(gauge.others(7000)).toBe(2);
  });
});
