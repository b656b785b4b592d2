import type { AcceleratorLoad } from '../../simulation/accelerator/accelerator.ts';

/** `GET /metrics`: what an engine says of its load, in Prometheus' text format. */
export function gaugesOf(load: AcceleratorLoad, kvTokensMax: number): string {
  const metric = (name: string, type: 'gauge' | 'counter', help: string, value: number) =>
    `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`;
  return (
    metric('armature_host_waiting', 'gauge', 'Requests that wait for a place.', load.waiting) +
    metric('armature_host_running', 'gauge', 'Requests that are being generated.', load.running) +
    metric(
      'armature_host_cache_used',
      'gauge',
      'Share of the KV tokens in use, 0 to 1.',
      load.kvTokens / kvTokensMax,
    ) +
    metric(
      'armature_host_prompt_tokens_total',
      'counter',
      'Tokens of prompts read.',
      load.promptTokensTotal,
    ) +
    metric('armature_host_output_tokens_total', 'counter', 'Tokens generated.', load.outputTokensTotal)
  );
}
