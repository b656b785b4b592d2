import { rawValue, scanMembers } from '../../protocols/json-members.ts';
import { isObject } from '../../protocols/json-object.ts';
import type { Exchange } from '../exchange.ts';
import { isPinned, isSequence } from '../ladder.ts';
import type { Backend } from '../state/world.ts';
import type { SkipCause } from './contracts.ts';

/** Members of a chat by which the server that answers does something by itself, whatever they say. */
const ACTING = ['web_search_options', 'mcp_servers', 'plugins'];
/** Members that ask for it where they are true: the answer is kept there, or made after the call has ended. */
const ACTING_IF_TRUE = ['store', 'background'];
const LOOKED_FOR = ['tools', ...ACTING, ...ACTING_IF_TRUE];
/** Tools that whoever called carries out: the server only says that it wants them. */
const CALLERS_TOOLS = ['function', 'custom'];

/**
 * Why no copy of the request may go to the backend: a second server would do for real what the first one has done. What
 * cannot be read counts as acting.
 */
export function fenced(x: Exchange, backend: Backend): SkipCause | undefined {
  const call = x.call!;
  if (isSequence(x)) return 'stateful';
  if (isPinned(x)) return 'version';
  if (x.route!.settings.effects || backend.settings.effects || x.backend?.settings.effects) return 'effects';
  if (call.protocol === 'openai' && call.kind !== 'embeddings' && actsOnServer(x.caller.body))
    return 'effects';
  return undefined;
}

/** Whether a chat lets the server do more than answer, such as searching or running code. */
function actsOnServer(body: Buffer): boolean {
  const scanned = scanMembers(body, 0, body.length, LOOKED_FOR);
  if (typeof scanned === 'string') return true;
  return scanned.members.some((member) => {
    const text = rawValue(body, member);
    if (text === 'null') return false;
    if (ACTING.includes(member.key)) return true;
    if (ACTING_IF_TRUE.includes(member.key)) return text !== 'false';
    return !areCallersTools(body.toString('utf8', member.start, member.end));
  });
}

function areCallersTools(text: string): boolean {
  try {
    const tools: unknown = JSON.parse(text);
    return (
      Array.isArray(tools) &&
      tools.every((tool) => isObject(tool) && CALLERS_TOOLS.includes((tool['type'] ?? 'function') as string))
    );
  } catch {
    return false; // nobody knows what it asks for
  }
}
