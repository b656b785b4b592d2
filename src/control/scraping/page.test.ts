import { describe, expect, it } from 'vitest';
import { gaugeNamesOf } from '../../backends/register.ts';
import { readPage } from './page.ts';

/** What engines print, cut down to what matters here and a neighbour or two; sources: their documentation. */
const PAGES = {
  vllm: `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="meta-llama/Llama-3.1-8B-Instruct"} 12.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="meta-llama/Llama-3.1-8B-Instruct"} 3.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="meta-llama/Llama-3.1-8B-Instruct"} 0.42
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="x",reason="capacity"} 99.0
vllm:time_to_first_token_seconds_bucket{le="0.001",model_name="x"} 0.0
`,
  oldVllm: `vllm:num_requests_running{model_name="m"} 5.0
vllm:num_requests_waiting{model_name="m"} 12.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.35
vllm:cpu_cache_usage_perc{model_name="m"} 0.0
`,
  sglang: `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 2.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 2.0
sglang:num_running_reqs_offline_batch{model_name="m"} 9.0
sglang:num_queue_reqs{model_name="m",priority=""} 3.0
sglang:num_queue_reqs{model_name="m",priority="1"} 2.0
sglang:num_queue_reqs{model_name="m",priority="2"} 1.0
sglang:token_usage{model_name="m"} 0.55
`,
  tgi: `# TYPE tgi_queue_size gauge
tgi_queue_size 4
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 7
tgi_batch_current_max_tokens 9000
`,
  llama: `llamacpp:requests_processing 4
llamacpp:requests_deferred 46
llamacpp:n_busy_slots_per_decode 3.87
`,
  triton: `nv_inference_pending_request_count{model="intents",version="1"} 2
nv_inference_pending_request_count{model="intents",version="2"} 3
nv_inference_pending_request_count{model="llama",version="1"} 50
nv_trt_llm_request_metrics{model="llama",request_type="waiting",version="1"} 5
nv_trt_llm_request_metrics{model="llama",request_type="scheduled",version="1"} 8
nv_trt_llm_request_metrics{model="llama",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="llama",version="1"} 0.25
`,
};

const read = (page: string, engine: string, model = 'm') => readPage(page, gaugeNamesOf(engine), model);

describe('the load that an engine tells', () => {
  it.each([
    ['vllm', 'vllm', { waiting: 3, running: 12, cacheUsed: 0.42 }],
    ['oldVllm', 'vllm', { waiting: 12, running: 5, cacheUsed: 0.35 }],
    ['sglang', 'sglang', { waiting: 3, running: 2, cacheUsed: 0.55 }],
    ['tgi', 'tgi', { waiting: 4, running: 7 }],
    ['llama', 'llama.cpp', { waiting: 46, running: 4 }],
  ] as const)('%s', (page, engine, load) => {
    expect(read(PAGES[page], engine)).toEqual(load);
    expect(read(PAGES[page], 'openai')).toEqual(load);
  });

  it('is that of its own model, of several on one page', () => {
    expect(read(PAGES.triton, 'triton', 'intents')).toEqual({ waiting: 5 });
    expect(read(PAGES.triton, 'triton', 'llama')).toEqual({ waiting: 5, running: 8, cacheUsed: 0.25 });
    expect(read(PAGES.triton, 'triton', 'gone')).toBeUndefined();
    const two = `${PAGES.oldVllm}${PAGES.oldVllm.replaceAll('"m"', '"n"').replaceAll('12.0', '1.0')}`;
    expect(read(two, 'vllm', 'n')).toEqual({ waiting: 1, running: 5, cacheUsed: 0.35 });
    expect(read(two, 'vllm', 'an alias of one of them')).toBeUndefined();
  });

  it('adds up the replicas behind one address', () => {
    const page = `vllm:num_requests_waiting{engine="0",model_name="m"} 3
vllm:num_requests_waiting{engine="1",model_name="m"} 4
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.9
`;
    expect(read(page, 'vllm')).toEqual({ waiting: 7, cacheUsed: 0.9 });
  });

  it('is unknown where it is missing, not a number, or impossible, and zero where it is zero', () => {
    expect(read('', 'vllm')).toBeUndefined();
    expect(read('<html>\n{{{', 'vllm')).toBeUndefined();
    expect(read('vllm:num_requests_waiting NaN\nvllm:kv_cache_usage_perc +Inf\n', 'vllm')).toBeUndefined();
    expect(read('vllm:num_requests_running -1e999\nvllm:num_requests_waiting 0\n', 'vllm')).toEqual({
      waiting: 0,
    });
    expect(read('vllm:kv_cache_usage_perc 37\nvllm:num_requests_running 1\n', 'vllm')).toEqual({
      running: 1,
    });
  });

  it('is not read by the names of another engine where the configuration names the engine', () => {
    expect(read(PAGES.tgi, 'vllm')).toBeUndefined();
  });
});
