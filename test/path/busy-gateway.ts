import { seededRandom } from '../../src/kernel/random.ts';
import type { SimulatedEngine } from '../../src/simulation/engine.ts';
import type { SimulatedGateway } from '../../src/simulation/gateway.ts';

/** What work costs on the one core of a gateway, milliseconds; as measured, all on one machine. */
const REQUEST_MS = 0.12;
const HEAD_MS = 0.05;
const EVENT_MS = 0.045;
/** From the gateway to the engine. */
const WAY_MS = 0.3;
/** A step of the engine, after which each stream has an event more. */
const STEP_MS = 16;
/** Pauses of the process: their mean length, and the mean time between two. */
const PAUSE_MS = 20;
const PAUSES_EVERY_MS = 500;

/**
 * Makes a gateway in virtual time as busy as a live one that is flooded: whatever comes to it, from callers or from the
 * engine, is worked on one after another, and now and then it pauses.
 */
export class BusyGateway {
  readonly #gateway: SimulatedGateway;
  readonly #random = seededRandom(77);
  #freeAt = 0;

  constructor(gateway: SimulatedGateway, engine: SimulatedEngine, streams: boolean) {
    this.#gateway = gateway;
    this.#delay(engine);
    this.#pause();
    if (streams) this.#relay(engine);
  }

  /** A request has come, and is taken up when it is its turn. */
  takes(run: () => void): void {
    this.#work(REQUEST_MS, run);
  }

  #work(costMs: number, run: () => void): void {
    const { time } = this.#gateway;
    const now = time.mono();
    this.#freeAt = Math.max(now, this.#freeAt) + costMs;
    time.set(this.#freeAt - now, run);
  }

  #delay(engine: SimulatedEngine): void {
    const send = engine.send.bind(engine);
    engine.send = (request, sink) => {
      let flight: ReturnType<typeof send> | undefined;
      let left = false;
      const later = (costMs: number, run: () => void) =>
        this.#work(costMs, () => {
          if (!left) run();
        });
      this.#gateway.time.set(WAY_MS, () => {
        if (left) return;
        flight = send(request, {
          onSent: () => sink.onSent(),
          onHead: (status, headers) => later(HEAD_MS, () => sink.onHead(status, headers)),
          onData: (data) => later(0, () => sink.onData(data)),
          onEnd: () => later(0, () => sink.onEnd()),
          onError: (error) => later(0, () => sink.onError(error)),
        });
      });
      return {
        abort() {
          left = true;
          flight?.abort();
        },
        pause() {},
        resume() {},
      };
    };
  }

  /** The simulated engine tells only the first token and the end of a stream: the others are work too. */
  #relay(engine: SimulatedEngine): void {
    this.#gateway.time.set(STEP_MS, () => {
      this.#work(EVENT_MS * engine.accelerator.load().running, () => {});
      this.#relay(engine);
    });
  }

  #pause(): void {
    this.#gateway.time.set(-PAUSES_EVERY_MS * Math.log(1 - this.#random.next()), () => {
      this.#work(PAUSE_MS * (0.3 + 1.4 * this.#random.next()), () => {});
      this.#pause();
    });
  }
}
