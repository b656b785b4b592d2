import type { Findings } from './checks.ts';
import type { ModelSettings, Settings } from './schema/index.ts';

/** What the members of a model say about one another: which files serve which task. */
export function checkModels({ models }: Settings, findings: Findings): void {
  for (const [name, model] of Object.entries(models)) {
    const path = ['models', name];
    const tasks = tasksOf(model);
    if (model.task !== undefined && !tasks.includes(model.task)) {
      const which = model.format === 'onnx' && !model.tokenizer ? 'without a tokenizer' : '';
      const message = `a model of format ${model.format} ${which}`.trimEnd();
      findings.fault('contradiction', [...path, 'task'], `${message} cannot be served as ${model.task}`, {
        expected: tasks.join(' or '),
        found: model.task,
      });
    }
    if (model.format === 'gguf' && model.tokenizer) {
      findings.fault('contradiction', [...path, 'tokenizer'], 'a gguf file holds its own tokenizer', {
        at: 'key',
        hint: 'leave the tokenizer out',
      });
    }
  }
}

function tasksOf({ format, tokenizer }: ModelSettings): string[] {
  if (format === 'gguf') return ['chat'];
  return tokenizer ? ['embedding', 'tensors'] : ['tensors'];
}
