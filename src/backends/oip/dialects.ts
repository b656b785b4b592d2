import type { Dialect } from '../contracts.ts';

const NONE = { waiting: [], running: [], cache: [] } as const;

/** Servers that speak the Open Inference Protocol over REST. Sources: the servers' own documentation. */
export const oipDialects: readonly Dialect[] = [
  {
    engine: 'oip',
    protocol: 'oip',
    healthPath: '/v2/health/ready',
    gauges: NONE,
    streamUsage: false,
    binaryTensors: true,
  },
  {
    engine: 'triton',
    protocol: 'oip',
    healthPath: '/v2/health/ready',
    // On a port of their own, 8002: `gauges` names it. A backend of TensorRT-LLM tells more than the server around it.
    gauges: {
      waiting: ['nv_trt_llm_request_metrics{request_type=waiting}', 'nv_inference_pending_request_count'],
      running: ['nv_trt_llm_request_metrics{request_type=scheduled}'],
      cache: ['nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=fraction}'],
    },
    streamUsage: false,
    badInputMessage: /^(failed to parse the request JSON buffer|Unable to parse ')/,
    binaryTensors: true,
  },
  {
    engine: 'kserve',
    protocol: 'oip',
    healthPath: '/v2/health/ready',
    gauges: NONE,
    streamUsage: false,
    binaryTensors: true,
  },
  {
    engine: 'mlserver',
    protocol: 'oip',
    healthPath: '/v2/health/ready',
    gauges: NONE,
    streamUsage: false,
    binaryTensors: false,
  },
  {
    engine: 'openvino',
    protocol: 'oip',
    healthPath: '/v2/health/ready',
    gauges: NONE,
    streamUsage: false,
    binaryTensors: true,
  },
  {
    engine: 'torchserve',
    protocol: 'oip',
    healthPath: '/ping',
    gauges: NONE,
    streamUsage: false,
    binaryTensors: false,
  },
];
