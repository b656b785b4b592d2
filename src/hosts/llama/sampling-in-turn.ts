import type { LlamaContext } from 'node-llama-cpp';

type SampleToken = (...args: unknown[]) => Promise<unknown>;

/**
 * Has the sequences of a context draw their tokens one after the other. node-llama-cpp 3 draws them in several threads at once, and
 * each first has llama.cpp bring the rows of the batch into order (`llama_get_logits`, ggml-org/llama.cpp#14853), which no lock
 * guards: now and then sequences of one batch draw out of each other's rows, a caller's token out of another caller's prompt.
 * Throws where the library is built otherwise.
 */
export function sampleInTurn(context: LlamaContext): void {
  const { _ctx: inner } = context as unknown as { _ctx?: { sampleToken?: SampleToken } };
  if (!inner?.sampleToken) throw new Error('this version of node-llama-cpp draws tokens in another way');
  const draw = inner.sampleToken.bind(inner);
  let last: Promise<unknown> = Promise.resolve();
  const inTurn: SampleToken = (...args) => {
    const drawn = last.then(() => draw(...args));
    last = drawn.catch(() => undefined); // the one that failed tells its own caller
    return drawn;
  };
  // Its class has the method as one that cannot be assigned to.
  Object.defineProperty(inner, 'sampleToken', { value: inTurn });
}
