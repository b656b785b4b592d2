/** Answers that Armature gives itself, framed as the call asks. */

export interface OwnAnswer {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  /** What the caller sent as `model`. */
  model: string;
  text: string;
}

const USAGE = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

export function chatAnswer(answer: OwnAnswer): string {
  return JSON.stringify({
    id: `chatcmpl-${answer.id}`,
    object: 'chat.completion',
    created: answer.created,
    model: answer.model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: answer.text, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: USAGE,
  });
}

export function completionAnswer(answer: OwnAnswer): string {
  return JSON.stringify({
    id: `cmpl-${answer.id}`,
    object: 'text_completion',
    created: answer.created,
    model: answer.model,
    choices: [{ index: 0, text: answer.text, logprobs: null, finish_reason: 'stop' }],
    usage: USAGE,
  });
}

/** The whole stream, `[DONE]` included. */
export function chatAnswerStream(answer: OwnAnswer, withUsage: boolean): string {
  const chunk = (delta: object, finish: string | null) => ({
    id: `chatcmpl-${answer.id}`,
    object: 'chat.completion.chunk',
    created: answer.created,
    model: answer.model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(withUsage ? { usage: null } : {}),
  });
  return events([
    chunk({ role: 'assistant', content: '' }, null),
    chunk({ content: answer.text }, null),
    chunk({}, 'stop'),
    ...(withUsage ? [{ ...chunk({}, null), choices: [], usage: USAGE }] : []),
  ]);
}

export function completionAnswerStream(answer: OwnAnswer, withUsage: boolean): string {
  const chunk = (text: string, finish: string | null) => ({
    id: `cmpl-${answer.id}`,
    object: 'text_completion',
    created: answer.created,
    model: answer.model,
    choices: [{ index: 0, text, logprobs: null, finish_reason: finish }],
    ...(withUsage ? { usage: null } : {}),
  });
  return events([
    chunk(answer.text, null),
    chunk('', 'stop'),
    ...(withUsage ? [{ ...chunk('', null), choices: [], usage: USAGE }] : []),
  ]);
}

function events(objects: object[]): string {
  return `${objects.map((object) => `data: ${JSON.stringify(object)}\n\n`).join('')}data: [DONE]\n\n`;
}
