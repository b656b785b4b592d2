import { type Member, scanMembers } from '../json-members.ts';

/** Where the prompt of a chat or a completion lies in its body, and the tools that engines put before it. */
export interface PromptPlace {
  prompt: Member;
  tools: Member | undefined;
}

const LOOKED_FOR = ['messages', 'prompt', 'tools'];

/** undefined where the body has none. Of a member that is given twice the last one counts, as it does for engines. */
export function promptPlace(body: Buffer): PromptPlace | undefined {
  const scanned = scanMembers(body, 0, body.length, LOOKED_FOR);
  if (typeof scanned === 'string') return undefined;
  const last = (key: string) => scanned.members.findLast((member) => member.key === key);
  const prompt = last('messages') ?? last('prompt');
  return prompt && { prompt, tools: last('tools') };
}
