import { availableParallelism } from 'node:os';
import type {
  ChatHistoryItem,
  ChatWrapper,
  Llama,
  LlamaContextSequence,
  LlamaGrammar,
  LlamaModel,
  LlamaText,
  Token,
} from 'node-llama-cpp';
import type { Random } from '../../kernel/random.ts';
import type { HostOrder } from '../contracts.ts';
import { badRequest } from '../fault.ts';
import { Places } from '../places.ts';
import { grammarSchema } from './json-schema.ts';
import type { ChatMessage, Sampling, Shape } from './request.ts';
import { Rounds } from './rounds.ts';
import { sampleInTurn } from './sampling-in-turn.ts';
import { Sequences } from './sequences.ts';
import { TextCutter } from './text-cutter.ts';
import { type DrawnToken, drawTokens } from './tokens.ts';

/**
 * Tokens that are computed in one go, of all sequences together. llama.cpp cannot be stopped within one: with 32, a
 * caller that leaves frees the machine within about 0.1 s, and reading prompts takes a tenth longer than with 512.
 */
const BATCH_TOKENS = 32;
/** Requests that may wait for a sequence; the gateway's own limits lie below by default. */
const WAITING_MAX = 256;
/** A token that ends in the middle of a character waits for the next ones, but never for more than make one up. */
const CHARACTER_TOKENS_MAX = 8;
/** llama.cpp's grammars let line ends follow the value for ever: this many of them are its end. */
const GRAMMAR_END = '\n\n\n\n';

/** Apple's processors have binaries with Metal only; elsewhere it is the processor that computes. */
const GPU = process.platform === 'darwin' && process.arch === 'arm64' ? 'metal' : false;

export interface EngineOptions {
  modelPath: string;
  threads: number | undefined;
  sequences: number;
  contextTokensMax: number;
  random: Random;
  warn: HostOrder['warn'];
}

/** One request, read and counted. */
export interface Job {
  prompt: Token[];
  maxTokens: number;
  sampling: Sampling;
  stop: string[];
  grammar: LlamaGrammar | undefined;
  topLogprobs: number | undefined;
}

/** Text that has become certain, and the tokens that made it. */
export interface Piece {
  text: string;
  tokens: DrawnToken[];
}

export interface Summary {
  finish: 'stop' | 'length' | 'left';
  promptTokens: number;
  /** Of them, those that a former request had left. */
  cachedTokens: number;
  /** The one that ended the answer included. */
  answerTokens: number;
}

/** One model in memory, generating for several requests together. */
export class LlamaEngine {
  readonly contextTokensMax: number;
  readonly places: Places;
  readonly #llama: Llama;
  readonly #library: typeof import('node-llama-cpp');
  readonly #model: LlamaModel;
  readonly #wrapper: ChatWrapper;
  readonly #sequences: Sequences;
  readonly #rounds = new Rounds(BATCH_TOKENS);
  readonly #sequenceCount: number;
  readonly #random: Random;
  readonly #vocabulary: number;
  readonly #tokenCharactersMax: number;

  private constructor(
    library: typeof import('node-llama-cpp'),
    llama: Llama,
    model: LlamaModel,
    sequences: LlamaContextSequence[],
    options: EngineOptions,
  ) {
    this.#library = library;
    this.#llama = llama;
    this.#model = model;
    this.#wrapper = chatWrapper(library, model, options.warn);
    this.#sequences = new Sequences(sequences);
    this.#sequenceCount = sequences.length;
    this.#random = options.random;
    const { tokens } = model.fileInfo.metadata.tokenizer.ggml;
    this.#vocabulary = tokens.length;
    this.#tokenCharactersMax = tokens.reduce((longest, token) => Math.max(longest, token.length), 1);
    this.contextTokensMax = options.contextTokensMax;
    this.places = new Places(sequences.length, WAITING_MAX);
  }

  /** Loads the library, the model and its context; rejects in words for a person where the model cannot be served so. */
  static async load(options: EngineOptions): Promise<LlamaEngine> {
    // An optional dependency: nothing but this host needs it.
    const library = await import('node-llama-cpp');
    // Its threads spin while they wait for each other, so more of them than free cores make everything slower.
    const threads = options.threads ?? Math.max(1, Math.floor(availableParallelism() / 2));
    const llama = await library.getLlama({
      gpu: GPU,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      maxThreads: threads,
      logLevel: library.LlamaLogLevel.error,
      logger: (_level, message) => options.warn?.(`llama.cpp: ${message.trimEnd()}`),
    });
    const model = await llama.loadModel({ modelPath: options.modelPath });
    if (options.contextTokensMax > model.trainContextSize) {
      throw new Error(
        `host.contextTokensMax is ${options.contextTokensMax}, but the model was trained for ${model.trainContextSize} tokens`,
      );
    }
    const context = await model.createContext({
      sequences: options.sequences,
      contextSize: options.contextTokensMax,
      batchSize: BATCH_TOKENS,
      threads,
    });
    sampleInTurn(context);
    const sequences = Array.from({ length: options.sequences }, () => context.getSequence());
    return new LlamaEngine(library, llama, model, sequences, options);
  }

  async dispose(): Promise<void> {
    await this.#llama.dispose();
  }

  /** Share of the cache that running requests hold, 0 to 1. */
  get cacheUsed(): number {
    return this.#sequences.tokensHeld / (this.#sequenceCount * this.contextTokensMax);
  }

  /** Whether a text is certainly too long, without making tokens of it, which for megabytes would hold up everybody. */
  surelyTooLong(characters: number): boolean {
    return characters > this.contextTokensMax * this.#tokenCharactersMax;
  }

  /** The prompt that the model's own template makes of a conversation. Special tokens in what callers wrote stay text. */
  chatPrompt(messages: readonly ChatMessage[]): Token[] {
    const history: ChatHistoryItem[] = messages.map(({ role, text }) =>
      role === 'assistant' ? { type: 'model', response: [text] } : { type: role, text },
    );
    const last = messages.at(-1);
    if (last?.role === 'assistant') {
      throw badRequest("the last message must not be the assistant's own", 'messages');
    }
    history.push({ type: 'model', response: [] });
    let text: LlamaText;
    try {
      text = this.#wrapper.generateContextState({ chatHistory: history }).contextText;
    } catch (error) {
      // Some models' templates refuse what they have not been trained on, such as two messages of the user in a row.
      throw badRequest(
        `messages: the model's template refuses them: ${(error as Error).message}`,
        'messages',
      );
    }
    return text.tokenize(this.#model.tokenizer);
  }

  textPrompt(prompt: string | number[]): Token[] {
    if (typeof prompt === 'string') {
      const tokens = this.#model.tokenize(prompt);
      const { bos, shouldPrependBosToken } = this.#model.tokens;
      return shouldPrependBosToken && bos !== null ? [bos, ...tokens] : tokens;
    }
    const unknown = prompt.find((token) => token >= this.#vocabulary);
    if (unknown !== undefined)
      throw badRequest(`prompt: the model has ${this.#vocabulary} tokens, there is no ${unknown}`, 'prompt');
    return prompt as Token[];
  }

  /** What holds an answer to its shape. */
  async grammarOf(shape: Shape): Promise<LlamaGrammar | undefined> {
    if (shape.kind === 'text') return undefined;
    if (shape.kind === 'json') return this.#llama.getGrammarFor('json');
    const schema = grammarSchema(shape.schema) as Parameters<Llama['createGrammarForJsonSchema']>[0];
    return this.#llama.createGrammarForJsonSchema(schema);
  }

  /** The text of one token, as log-probabilities tell it. */
  textOf(token: Token): string {
    return this.#model.detokenize([token], true);
  }

  /**
   * Generates an answer, together with those of other requests. Waits for a free sequence, throws tooBusy when too many
   * wait already, and ends with `left` soon after the caller has gone.
   */
  async *generate(job: Job, gone: AbortSignal): AsyncGenerator<Piece, Summary, void> {
    const summary: Summary = {
      finish: 'left',
      promptTokens: job.prompt.length,
      cachedTokens: 0,
      answerTokens: 0,
    };
    if (!(await this.places.take(gone))) return summary;
    try {
      const sequence = this.#sequences.take(job.prompt);
      try {
        summary.cachedTokens = await this.#read(sequence, job, gone);
        if (gone.aborted) return summary;
        return yield* this.#answer(sequence, job, gone, summary);
      } finally {
        this.#sequences.give(sequence);
      }
    } finally {
      this.places.release();
    }
  }

  /** Reads all of the prompt but its last token, and gives how much of it the sequence knew already. */
  async #read(sequence: LlamaContextSequence, { prompt, sampling }: Job, gone: AbortSignal): Promise<number> {
    const end = prompt.length - 1;
    // What is read in other pieces comes out different in the last digits: with a seed, an answer is to come again.
    if (sampling.seed === undefined) await sequence.adaptStateToTokens(prompt.slice(0, end), false);
    else await sequence.clearHistory();
    const known = sequence.nextTokenIndex;
    for (let at = known; at < end && !gone.aborted; ) {
      at = await this.#rounds.read(async (tokens) => {
        const to = Math.min(at + tokens, end);
        await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, to));
        return to;
      });
    }
    return known;
  }

  async *#answer(
    sequence: LlamaContextSequence,
    job: Job,
    gone: AbortSignal,
    summary: Summary,
  ): AsyncGenerator<Piece, Summary, void> {
    const { grammar, sampling } = job;
    const cutter = new TextCutter(grammar ? [...job.stop, GRAMMAR_END] : job.stop);
    const draws = drawTokens(sequence, job.prompt.at(-1)!, {
      sampling,
      seed: (sampling.seed ?? Math.floor(this.#random.next() * 2 ** 32)) >>> 0,
      bias: this.#bias(sampling),
      grammar: grammar && new this.#library.LlamaGrammarEvaluationState({ model: this.#model, grammar }),
      topLogprobs: job.topLogprobs,
    });

    let unspoken: Token[] = []; // Tokens that end in the middle of a character.
    let untold: DrawnToken[] = []; // Tokens whose text is held back.
    for await (const drawn of this.#rounds.draw(draws)) {
      if (gone.aborted) return summary;
      summary.answerTokens++;
      if (this.#model.isEogToken(drawn.token)) {
        summary.finish = 'stop';
        break;
      }
      unspoken.push(drawn.token);
      untold.push(drawn);
      let text = this.#model.detokenize(unspoken);
      if (text.endsWith('\uFFFD') && unspoken.length < CHARACTER_TOKENS_MAX) text = '';
      else unspoken = [];
      const certain = cutter.push(text);
      if (certain !== '') {
        yield { text: certain, tokens: untold };
        untold = [];
      }
      if (cutter.stopped || summary.answerTokens === job.maxTokens) {
        summary.finish = cutter.stopped ? 'stop' : 'length';
        break;
      }
    }
    const rest = cutter.push(this.#model.detokenize(unspoken)) + cutter.end();
    if (rest !== '') yield { text: grammar ? rest.trimEnd() : rest, tokens: untold };
    return summary;
  }

  #bias(sampling: Sampling) {
    if (sampling.bias.size === 0) return undefined;
    const bias = new this.#library.TokenBias(this.#model.tokenizer);
    for (const [token, logit] of sampling.bias) bias.set(token as Token, { logit });
    return bias;
  }
}

/** The template that came with the model, or, said aloud, what the library thinks fits where that cannot be used. */
function chatWrapper(
  library: typeof import('node-llama-cpp'),
  model: LlamaModel,
  warn: EngineOptions['warn'],
): ChatWrapper {
  const template = model.fileInfo.metadata.tokenizer.chat_template;
  if (template !== undefined) {
    try {
      return new library.JinjaTemplateChatWrapper({ template, tokenizer: model.tokenizer });
    } catch (error) {
      warn?.("the model's own chat template cannot be used", error);
    }
  }
  const wrapper = library.resolveChatWrapper(model);
  warn?.(`prompts of chats are made in the way of ${wrapper.wrapperName}`);
  return wrapper;
}
