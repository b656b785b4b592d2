import { imagesIn, type Transcript } from './transcript.ts';
import { callIds } from './turns.ts';

/** What a transcript has beside text, which not every model takes. */
export type Wish = 'tools' | 'images' | 'json';

/** The first thing of it that a backend does not take, with the member that asks for it; undefined where it takes all. */
export function lacking(
  { messages, rest }: Transcript,
  accepts: readonly Wish[] | undefined,
): { wish: Wish; param: string } | undefined {
  if (!accepts) return undefined;
  if (!accepts.includes('tools')) {
    if (isList(rest.tools) && rest.tool_choice !== 'none') return { wish: 'tools', param: 'tools' };
    if (isList(rest.functions)) return { wish: 'tools', param: 'functions' };
    const called = messages.some(
      ({ role, value }) => role === 'tool' || role === 'function' || callIds(value).length > 0,
    );
    if (called) return { wish: 'tools', param: 'messages' };
  }
  if (!accepts.includes('images') && messages.some(({ value }) => imagesIn(value) > 0)) {
    return { wish: 'images', param: 'messages' };
  }
  if (!accepts.includes('json') && isShaped(rest.response_format)) {
    return { wish: 'json', param: 'response_format' };
  }
  return undefined;
}

function isList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function isShaped(format: unknown): boolean {
  const type = (format as { type?: unknown } | null | undefined)?.type;
  return type !== undefined && type !== 'text';
}
