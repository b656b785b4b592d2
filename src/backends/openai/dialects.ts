import type { Dialect } from '../contracts.ts';

const NONE = { waiting: [], running: [], cache: [] } as const;

/**
 * Engines that speak OpenAI's API. Vendor forks (ROCm, Gaudi, TPU builds of vLLM) keep their parent's names.
 * Sources: the engines' own documentation of their metrics and health paths.
 */
export const openaiDialects: readonly Dialect[] = [
  {
    engine: 'openai',
    protocol: 'openai',
    healthPath: 'models',
    gauges: NONE,
    streamUsage: true,
    chatCap: 'max_completion_tokens', // models that reason refuse max_tokens
  },
  {
    engine: 'vllm',
    protocol: 'openai',
    healthPath: '/health',
    gaugesPath: '/metrics',
    gauges: {
      waiting: ['vllm:num_requests_waiting'],
      running: ['vllm:num_requests_running'],
      cache: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    },
    tokenizes: 'vllm',
    streamUsage: true,
  },
  {
    engine: 'sglang',
    protocol: 'openai',
    healthPath: '/health',
    gaugesPath: '/metrics',
    gauges: {
      waiting: ['sglang:num_queue_reqs'],
      running: ['sglang:num_running_reqs'],
      cache: ['sglang:token_usage'],
    },
    streamUsage: true,
  },
  {
    engine: 'tgi',
    protocol: 'openai',
    healthPath: '/health',
    gaugesPath: '/metrics',
    gauges: { waiting: ['tgi_queue_size'], running: ['tgi_batch_current_size'], cache: [] },
    streamUsage: true,
  },
  {
    engine: 'llama.cpp',
    protocol: 'openai',
    healthPath: '/health',
    gaugesPath: '/metrics',
    gauges: {
      waiting: ['llamacpp:requests_deferred'],
      running: ['llamacpp:requests_processing'],
      cache: ['llamacpp:kv_cache_usage_ratio'],
    },
    tokenizes: 'llama.cpp',
    streamUsage: true,
    // 501: a kind of call that the server was not started for.
    badInputStatuses: [501],
    badInputMessage: /^(Failed to parse (messages|tools)\b|\w+ input is not supported)/,
  },
  { engine: 'ollama', protocol: 'openai', healthPath: '/api/version', gauges: NONE, streamUsage: true },
  {
    engine: 'tensorrt-llm',
    protocol: 'openai',
    healthPath: '/health',
    gaugesPath: '/prometheus/metrics', // its /metrics is a queue of JSON, which every reader shortens
    gauges: {
      waiting: ['trtllm_num_requests_waiting'],
      running: ['trtllm_num_requests_running'],
      cache: ['trtllm_kv_cache_utilization'],
    },
    streamUsage: true,
  },
];
