import type { Findings } from './checks.ts';
import type { BackendSettings, Settings } from './schema/index.ts';

/** Engines that tell how many tokens the prompt of a chat has. */
const COUNTING = ['vllm', 'llama.cpp', 'local'];

/** What is said of prompts and conversations: what counts, what a window leaves, and who makes summaries. */
export function checkContexts({ backends, routes }: Settings, findings: Findings): void {
  for (const [name, backend] of Object.entries(backends)) checkBackend(name, backend, findings);
  for (const [name, { context }] of Object.entries(routes)) {
    const { middle } = context ?? {};
    if (middle === undefined || middle === 'drop') continue;
    const path = ['routes', name, 'context', 'middle', 'summarise'];
    if (middle.summarise === name) {
      findings.fault('contradiction', path, 'a route cannot make summaries for itself');
    } else if ((routes[middle.summarise]?.context?.middle ?? 'drop') !== 'drop') {
      const message = `"${middle.summarise}" has summaries made itself, so that one could wait for the other without end`;
      findings.fault('contradiction', path, message, { hint: 'name a route that drops the middle' });
    }
  }
}

function checkBackend(name: string, backend: BackendSettings, findings: Findings): void {
  const { context, engine } = backend;
  if (!context) return;
  const path = ['backends', name, 'context'];
  const { tokenizer, window, reserve, template } = context;
  if (tokenizer === 'engine' && !COUNTING.includes(engine)) {
    const message = `no way is known to ask ${engine} for the tokens of a chat`;
    findings.fault('contradiction', [...path, 'tokenizer'], message, {
      expected: `engine: ${COUNTING.join(', ')}; or a tokenizer by file or model`,
      found: `engine: ${engine}`,
    });
  }
  if (engine === 'local' && ((tokenizer !== undefined && tokenizer !== 'engine') || template !== undefined)) {
    const message = 'the host of a local model counts by the model file itself';
    const hint = 'leave tokenizer and template out';
    findings.fault('contradiction', [...path, tokenizer === undefined ? 'template' : 'tokenizer'], message, {
      hint,
    });
  }
  if (window !== undefined && reserve !== undefined && reserve >= window) {
    const message = `a window of ${window} tokens has no room for a prompt beside ${reserve} kept for the answer`;
    findings.fault('contradiction', [...path, 'reserve'], message, {
      expected: `less than ${window}`,
      found: String(reserve),
    });
  }
  const unknown = window === undefined && typeof tokenizer === 'object' && 'file' in tokenizer;
  if (unknown && !tokenizer.file.endsWith('.gguf')) {
    const message = 'a tokenizer.json tells no window: without one, conversations are sent whole';
    findings.notices.push({ code: 'looks-wrong', path, message });
  }
}
