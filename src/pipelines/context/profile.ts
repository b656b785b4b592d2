import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { BackendSettings } from '../../config/schema/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { TokenizerFile, TokenizerFiles } from '../preprocessing/contracts.ts';
import { fileNow } from '../preprocessing/model-tokenizers.ts';
import { type Gguf, isGguf, readGguf } from './gguf.ts';
import { ChatTemplate, type SpecialTokens } from './template.ts';

/** What is known of the prompts of one backend. */
export interface Profile {
  /** Tokens of prompt and answer together; undefined where nobody knows. */
  window: number | undefined;
  /** Tokens kept for the answer where the caller names no maximum. */
  reserve: number | undefined;
  /** What counts: its tokenizer, the engine itself, or bytes, which bound. */
  by: 'tokenizer' | 'engine' | 'bytes';
  /** Why nothing better than bytes is there. */
  why: string | undefined;
  tokenizer: TokenizerFile | undefined;
  template: ChatTemplate | undefined;
  /** Put before a prompt that does not begin with it. */
  opening: string | undefined;
  imageTokens: number;
  accepts: readonly ('tools' | 'images' | 'json')[] | undefined;
}

/** A profile that lacks a file is looked at again after this, milliseconds. */
const AGAIN_MS = 1_000;
/** Files of which is kept what they say; a configuration names far fewer. */
const FILES_MAX = 64;

/** Finds what is known of backends' prompts, and keeps it as long as their settings and files stay as they are. */
export class Profiles {
  readonly #files: TokenizerFiles | undefined;
  readonly #clock: Clock;
  readonly #known = new WeakMap<BackendSettings, { profile: Profile; until: number }>();
  /** By path: what a file says, as long as it stays as it is. */
  readonly #ggufs = new Map<string, { key: string; gguf: Gguf }>();

  constructor(files: TokenizerFiles | undefined, clock: Clock) {
    this.#files = files;
    this.#clock = clock;
  }

  of(settings: BackendSettings): Profile {
    const now = this.#clock.mono();
    const known = this.#known.get(settings);
    if (known && now < known.until) return known.profile;
    const profile = this.#find(settings);
    const until = profile.why === undefined ? Number.POSITIVE_INFINITY : now + AGAIN_MS;
    this.#known.set(settings, { profile, until });
    return profile;
  }

  #find(settings: BackendSettings): Profile {
    const { context } = settings;
    const isLocal = settings.engine === 'local';
    const profile: Profile = {
      window: context?.window,
      reserve: context?.reserve,
      by: 'bytes',
      why: undefined,
      tokenizer: undefined,
      template: undefined,
      opening: undefined,
      imageTokens: context?.imageTokens ?? 0,
      accepts: context?.accepts,
    };
    if (isLocal) {
      const own = settings.host.contextTokensMax;
      profile.window = Math.min(context?.window ?? own, own);
    }
    // The host of a local model makes its prompts out of the GGUF file, and counts them as it does.
    const named = context?.tokenizer ?? (isLocal ? 'engine' : undefined);
    if (named === 'engine') {
      profile.by = 'engine';
      return profile;
    }
    try {
      this.#read(profile, named, context?.template);
    } catch (error) {
      profile.why = (error as Error).message;
    }
    return profile;
  }

  /** Throws, in words, where something of it cannot be had. */
  #read(profile: Profile, named: Named | undefined, template: string | undefined): void {
    const file = named && this.#fileOf(named);
    let tokens: SpecialTokens = {};
    let source: string | undefined;
    if (file && isGguf(file.path)) {
      const gguf = this.#gguf(file);
      tokens = gguf;
      source = gguf.template;
      profile.window ??= gguf.contextTokens;
      if (gguf.addBos) profile.opening = gguf.bos;
      if (typeof gguf.tokenizer === 'string') profile.why = gguf.tokenizer;
      else profile.tokenizer = file;
    } else if (file) {
      profile.tokenizer = file;
      ({ tokens, source } = besideTokenizer(file.path));
    }
    if (template !== undefined) source = readFileSync(template, 'utf8');
    if (source !== undefined) profile.template = new ChatTemplate(source, tokens);
    if (profile.tokenizer) profile.by = 'tokenizer';
  }

  #fileOf(named: Named): TokenizerFile {
    if ('file' in named) {
      const file = fileNow(named.file);
      if (!file) throw new Error(`there is no file ${named.file}`);
      return file;
    }
    const file = this.#files?.ofModel(named.model);
    if (!file) throw new Error(`the tokenizer of the model '${named.model}' is not here yet`);
    return file;
  }

  #gguf({ key, path }: TokenizerFile): Gguf {
    const read = this.#ggufs.get(path);
    if (read?.key === key) return read.gguf;
    const whole = readGguf(path);
    // What is needed here is the rest: a vocabulary is read by who makes tokens.
    const gguf = { ...whole, tokenizer: typeof whole.tokenizer === 'string' ? whole.tokenizer : {} };
    if (this.#ggufs.size >= FILES_MAX) this.#ggufs.clear();
    this.#ggufs.set(path, { key, gguf });
    return gguf;
  }
}

type Named = { file: string } | { model: string };

/** Templates and special tokens as the makers of tokenizer.json lay them beside it. */
function besideTokenizer(path: string): { tokens: SpecialTokens; source: string | undefined } {
  const config = readIfThere(join(dirname(path), 'tokenizer_config.json'));
  const said = (config === undefined ? {} : JSON.parse(config)) as Record<string, unknown>;
  const lone = readIfThere(join(dirname(path), 'chat_template.jinja'));
  return {
    tokens: { bos: tokenText(said.bos_token), eos: tokenText(said.eos_token) },
    source: lone ?? templateIn(said.chat_template),
  };
}

/** One template, or several by name, of which `default` is for plain chats. */
function templateIn(said: unknown): string | undefined {
  if (typeof said === 'string') return said;
  if (!Array.isArray(said)) return undefined;
  const named = said as { name?: unknown; template?: unknown }[];
  const template = named.find(({ name }) => name === 'default')?.template;
  return typeof template === 'string' ? template : undefined;
}

/** A token is written as its text, or as an object that has it. */
function tokenText(token: unknown): string | undefined {
  const text = typeof token === 'object' && token !== null ? (token as { content?: unknown }).content : token;
  return typeof text === 'string' ? text : undefined;
}

function readIfThere(path: string): string | undefined {
  return statSync(path, { throwIfNoEntry: false }) ? readFileSync(path, 'utf8') : undefined;
}
