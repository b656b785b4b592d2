import type { Backend, Endpoint, Exchange, FittedBody, Path } from '../../gateway/contracts.ts';
import { type Failure, invalidRequest } from '../../kernel/errors.ts';
import { readOpenaiRequest, withCapsLowered } from '../../protocols/openai/request.ts';
import { type Candidate, changesOf, keptOf, messagesOf } from './candidate.ts';
import { Counter } from './counting.ts';
import { type Count, type Fit, fitTranscript } from './fit.ts';
import type { Contexts } from './index.ts';
import type { Profile } from './profile.ts';
import { bodyOf, readTranscript, type Transcript, tangledIn } from './transcript.ts';
import { type Turns, turnsOf } from './turns.ts';
import { lacking } from './wishes.ts';

/** Where nothing is configured: tokens kept for an answer, a quarter of the window at most. */
const RESERVE_MAX = 1024;

export interface FittingOptions {
  path: Path;
  x: Exchange;
  backend: Backend;
  endpoint: Endpoint;
  done(result: FittedBody | Failure): void;
  /** Gives the place back while others work for it; it is planned anew afterwards. */
  yieldPlace(): void;
}

type RouteContext = NonNullable<NonNullable<Exchange['route']>['settings']['context']>;
const DEFAULTS: RouteContext = {
  fit: false,
  keep: { first: 1, last: 2 },
  middle: 'drop',
  summaryTokensMax: 256,
  lastTurn: 'whole',
};

/** The making of what is sent of one transcript to one backend. */
export class Fitting {
  readonly #contexts: Contexts;
  readonly #options: FittingOptions;
  readonly #profile: Profile;
  readonly #rule: RouteContext;
  #transcript!: Transcript;
  #turns!: Turns;
  #window = 0;
  #reserve = 0;
  #over = false;
  /** Gives up the summary that is asked for. */
  #cancelSummary: (() => void) | undefined;
  #counter: Counter | undefined;

  constructor(contexts: Contexts, options: FittingOptions) {
    this.#contexts = contexts;
    this.#options = options;
    this.#profile = contexts.profiles.of(options.backend.settings);
    this.#rule = options.x.route!.settings.context ?? DEFAULTS;
  }

  start(): void {
    const { x, backend, endpoint } = this.#options;
    const transcript = this.#contexts.off ? undefined : readTranscript(x.caller.body);
    if (!transcript) {
      this.#end(this.#made(x.caller.body, undefined)); // the engine says what is wrong with it
      return;
    }
    this.#transcript = transcript;
    const lack = lacking(transcript, this.#profile.accepts);
    if (lack) {
      this.#step('context-not-accepted', { wants: lack.wish }, `backends.${backend.name}.context.accepts`);
      this.#refuse(`The model behind this answer takes no ${NAMES[lack.wish]}.`, lack.param);
      return;
    }
    const tangled = tangledIn(transcript);
    if (tangled) {
      this.#refuse(`The member '${tangled}' is nested too deeply for a model to read.`, tangled);
      return;
    }
    this.#turns = turnsOf(transcript.messages, this.#rule.keep);
    const { pool } = this.#contexts;
    const { rank, deadlineAt } = x;
    const { rest } = transcript;
    this.#counter = new Counter({ profile: this.#profile, pool, backend, endpoint, rest, rank, deadlineAt });
    this.#findWindow((window) => {
      if (window === undefined) this.#end(this.#made(this.#bodyOf({ out: 0 }), undefined));
      else this.#search(window);
    });
  }

  cancel(): void {
    this.#over = true;
    this.#counter?.cancel();
    this.#cancelSummary?.();
  }

  /** An engine that counts may tell its window, once. */
  #findWindow(go: (window: number | undefined) => void): void {
    const { settings } = this.#options.backend;
    const { toldWindows } = this.#contexts;
    const known = this.#profile.window ?? toldWindows.get(settings);
    if (known !== undefined || this.#profile.by !== 'engine') {
      go(known);
      return;
    }
    this.#counter!.window(messagesOf(this.#transcript, this.#turns, { out: 0 }), (window) => {
      if (window !== undefined) toldWindows.set(settings, window);
      go(window);
    });
  }

  /** Tokens that the caller lets the answer have, where it says so. */
  get #asked(): number | undefined {
    const call = this.#options.x.call!;
    return call.protocol === 'openai' ? call.request.outputTokensMax : undefined;
  }

  #search(window: number): void {
    const { x } = this.#options;
    const asked = this.#asked;
    const usual = this.#profile.reserve ?? Math.min(RESERVE_MAX, window >> 2);
    this.#window = window;
    this.#reserve = asked === undefined ? Math.min(usual, window - 1) : Math.min(asked, window >> 1);
    const summarises = this.#rule.middle !== 'drop';
    const search = fitTranscript(this.#transcript, this.#turns, {
      budget: window - this.#reserve,
      cut: this.#rule.lastTurn === 'cut' && x.fits !== 'whole',
      summary: summarises ? this.#rule.summaryTokensMax + SUMMARY_AROUND : 0,
    });
    this.#drive(search, search.next(), (fit) => this.#found(fit));
  }

  #drive(
    search: Generator<Candidate[], Fit, Count[]>,
    step: IteratorResult<Candidate[], Fit>,
    found: (fit: Fit) => void,
  ): void {
    if (this.#over) return;
    if (step.done) found(step.value);
    else this.#count(step.value, (counts) => this.#drive(search, search.next(counts), found));
  }

  #count(candidates: readonly Candidate[], done: (counts: Count[]) => void): void {
    const chats = candidates.map((candidate) => messagesOf(this.#transcript, this.#turns, candidate));
    this.#counter!.count(chats, done);
  }

  #found(fit: Fit): void {
    const { x, backend } = this.#options;
    const { name } = x.route!;
    const figures = { tokens: fit.count.tokens, ...this.#figures(fit.count) };
    if (fit.how === 'unfit' || (fit.how !== 'whole' && x.fits === 'whole')) {
      const tokens = fit.how === 'unfit' ? fit.count.tokens : fit.whole.tokens;
      this.#step('context-unfit', { ...figures, tokens }, `backends.${backend.name}.context.window`);
      this.#refuse(unfitWords(fit, tokens, this.#window, this.#reserve, x.fits === 'whole'), 'messages');
      return;
    }
    if (fit.how === 'whole') {
      this.#step('context-whole', figures);
      this.#finish(fit.candidate, fit.count);
      return;
    }
    const { middle } = this.#rule;
    if (middle !== 'drop' && fit.candidate.out > 0) this.#summarise(fit, middle.summarise);
    else {
      this.#tellShortened(fit, `routes.${name}.context.${fit.how === 'cut' ? 'lastTurn' : 'keep'}`);
      this.#finish(fit.candidate, fit.count);
    }
  }

  #tellShortened({ how, candidate, count, whole }: Fit, setting: string): void {
    const { messages } = this.#transcript;
    const kept = keptOf(this.#transcript, this.#turns, candidate).length;
    this.#step(
      how === 'cut'
        ? 'context-cut'
        : candidate.summary === undefined
          ? 'context-dropped'
          : 'context-summarised',
      {
        tokens: count.tokens,
        // Of what is too long beyond doubt only the bytes are known.
        ...(whole.exact === count.exact ? { ofTokens: whole.tokens } : {}),
        out: messages.length - kept,
        messages: messages.length,
        ...this.#figures(count),
      },
      setting,
    );
  }

  /** The turns that are left out are told in short by another route, where that can be had in time. */
  #summarise(fit: Fit, route: string): void {
    const { path, x, yieldPlace } = this.#options;
    const out = steadyOut(fit.candidate.out, this.#turns.middle);
    const left = this.#turns.order.slice(0, out);
    const request = { path, x, route, tokensMax: this.#rule.summaryTokensMax, yieldPlace };
    this.#cancelSummary = this.#contexts.summaries.of(request, this.#transcript, left, (summary) => {
      if (this.#over) return;
      if ('failed' in summary) this.#withoutSummary(fit, summary.failed);
      else this.#withSummary(fit, out, summary.text);
    });
  }

  #withSummary(fit: Fit, out: number, summary: string): void {
    const candidate = { ...fit.candidate, out, summary };
    this.#count([candidate], ([count]) => {
      if (this.#over) return;
      if (count!.tokens > this.#window - this.#reserve) {
        this.#withoutSummary(fit, 'it was too long');
        return;
      }
      const { name } = this.#options.x.route!;
      this.#tellShortened({ ...fit, candidate, count: count! }, `routes.${name}.context.middle`);
      this.#finish(candidate, count!);
    });
  }

  #withoutSummary(fit: Fit, why: string): void {
    const setting = `routes.${this.#options.x.route!.name}.context.middle`;
    this.#step('context-without-summary', { why }, setting);
    this.#tellShortened(fit, setting);
    this.#finish(fit.candidate, fit.count);
  }

  #bodyOf(candidate: Candidate): Buffer {
    const kept = keptOf(this.#transcript, this.#turns, candidate);
    return bodyOf(this.#transcript, kept, changesOf(this.#transcript, this.#turns, kept, candidate));
  }

  /** An answer that may be longer than the room there is would be refused by some engines: it may be as long as there is room. */
  #finish(candidate: Candidate, count: Count): void {
    let body = this.#bodyOf(candidate);
    const room = this.#window - count.tokens;
    const asked = this.#asked;
    if (asked !== undefined && asked > room) {
      const request = readOpenaiRequest(body);
      if (!('message' in request)) body = withCapsLowered(body, request, room);
      this.#step(
        'context-answer-shorter',
        { asked, room },
        `backends.${this.#options.backend.name}.context.window`,
      );
    }
    this.#end(this.#made(body, count.exact ? count.tokens : undefined));
  }

  #made(body: Buffer, tokensIn: number | undefined): FittedBody | Failure {
    const { path, x, backend } = this.#options;
    const own = x.caller.body;
    const request = body === own && x.call!.protocol === 'openai' ? x.call!.request : readOpenaiRequest(body);
    if ('message' in request) return invalidRequest(request.message, request.param);
    if (body !== own) {
      const { buffers } = path.deps;
      const bytes = body.length;
      if (!buffers.take(bytes)) {
        const message = 'There is no room for another request now.';
        return { code: 'overloaded', message, phase: 'before-queue', retryAfterSeconds: 1 };
      }
      x.scope.add(() => buffers.give(bytes));
    }
    return { backend: backend.name, settings: backend.settings, body, request, tokensIn };
  }

  #figures({ exact }: Count) {
    return {
      counted: exact ? 'exactly' : 'at most',
      by: this.#counter!.by,
      window: this.#window,
      reserve: this.#reserve,
      ...(this.#counter!.why === undefined ? {} : { why: this.#counter!.why }),
    };
  }

  #step(code: string, figures: Record<string, string | number>, setting?: string): void {
    const { path, x, backend } = this.#options;
    path.step(x, 'plan', code, { backend: backend.name, ...figures }, setting);
  }

  #refuse(message: string, param: string): void {
    this.#end(invalidRequest(message, this.#options.x.stateful ? 'input' : param));
  }

  #end(result: FittedBody | Failure): void {
    if (this.#over) return;
    this.#over = true;
    this.#options.done(result);
  }
}

/** So many turns go together where a summary stands for them: the next turns of a conversation then find it made. */
const SUMMARISED_TURNS = 4;

function steadyOut(out: number, middle: number): number {
  return out > middle ? out : Math.min(middle, Math.ceil(out / SUMMARISED_TURNS) * SUMMARISED_TURNS);
}

/** What is put around a summary, in tokens, at most. */
const SUMMARY_AROUND = 64;

const NAMES = { tools: 'tools', images: 'images', json: 'response_format' } as const;

function unfitWords(fit: Fit, tokens: number, window: number, reserve: number, asSent: boolean): string {
  const counted = fit.count.exact ? '' : 'at most ';
  const what = asSent ? 'The conversation' : 'Instructions, pinned turns and the last turn alone';
  const verb = asSent ? 'has' : 'have';
  return `${what} ${verb} ${counted}${tokens} tokens; the model's window is ${window}, of which ${reserve} are kept for the answer.`;
}
