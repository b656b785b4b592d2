import { AROUND_MESSAGE, boundOfChat, boundOfText, imageTokens } from './bound.ts';
import type { Count } from './fit.ts';
import type { Profile } from './profile.ts';
import { type Message, textsOf } from './transcript.ts';

/** Messages of one candidate, as templates see them; and what else the body says. */
export type Messages = readonly Message['value'][];
export type Rest = Readonly<Record<string, unknown>>;

/** A prompt before its tokens are counted. */
export interface Prompt {
  text: string;
  /** Tokens beside those of the text. */
  beside: number;
  exact: boolean;
}

/**
 * The prompt of a chat as the engine makes it, or texts that have no fewer tokens. Undefined where the template refuses the
 * messages: so will the engine, and says why.
 */
export function promptOf(profile: Profile, messages: Messages, rest: Rest): Prompt | undefined {
  const images = imageTokens(messages, profile.imageTokens);
  const { template, opening } = profile;
  if (!template) return { text: textOf(messages, rest), beside: images + around(messages), exact: false };
  try {
    const text = template.render(messages, rest);
    const opens = opening === undefined || text.startsWith(opening);
    return { text: opens ? text : opening + text, beside: images, exact: images === 0 };
  } catch {
    return undefined;
  }
}

/** Counts by bytes: at once, and never too few. */
export function boundOf(profile: Profile, messages: Messages, rest: Rest): Count {
  const images = imageTokens(messages, profile.imageTokens);
  const prompt = profile.template && promptOf(profile, messages, rest);
  return { tokens: images + (prompt ? boundOfText(prompt.text) : boundOfChat(messages, rest)), exact: false };
}

function textOf(messages: Messages, { tools }: Rest): string {
  const calls = messages.flatMap(({ tool_calls }) => (tool_calls == null ? [] : asText(tool_calls)));
  return [...messages.flatMap(textsOf), ...calls, tools == null ? '' : asText(tools)].join('\n');
}

function around(messages: Messages): number {
  return AROUND_MESSAGE * (messages.length + 4);
}

/** Twice over: some templates write a member to a line. */
function asText(value: unknown): string {
  return JSON.stringify(value).repeat(2);
}
