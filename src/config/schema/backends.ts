import { z } from 'zod';
import { backendContext } from './context.ts';
import { version } from './registry.ts';
import {
  duration,
  durationAboveZero,
  file,
  headerName,
  headerSecret,
  name,
  secret,
  url,
  whole,
} from './values.ts';

const limits = z
  .strictObject({
    concurrency: whole(1, 100_000)
      .default(256)
      .describe('Requests at once at one endpoint: a hard cap, never exceeded by all workers together.'),
    adaptive: z
      .literal(['knee', 'target', 'gradient2', 'vegas', 'aimd', 'off'], {
        error: 'expected knee, target, gradient2, vegas, aimd or off',
      })
      .optional()
      .describe(
        'What moves the limit of an endpoint below that cap. Default: `target` where `firstToken` is given, else `knee`; `off`: the cap alone.',
      ),
    firstToken: durationAboveZero
      .optional()
      .describe('Within which 19 of 20 streams are to have their first token, from sending them.'),
  })
  .prefault({});

const timeouts = z
  .strictObject({
    connect: durationAboveZero.prefault('1s').describe('Until a connection stands.'),
    firstByte: durationAboveZero
      .prefault('60s')
      .describe('A stream: from sending the request to the first byte of its body.'),
    idle: durationAboveZero.prefault('30s').describe('A stream: the longest pause between two pieces.'),
    total: durationAboveZero.prefault('600s').describe('The whole answer of one attempt.'),
  })
  .prefault({});

const probe = z
  .strictObject({
    path: z
      .string()
      .regex(/^\//, 'expected a path that starts with /')
      .optional()
      .describe('Asked by GET at the root of the endpoint. Default: by engine. Never an inference.'),
    every: durationAboveZero
      .prefault('5s')
      .describe('Mean time between two probes; each is moved by up to a fifth.'),
    healthy: whole(1).default(2).describe('Good answers in a row that make an endpoint well.'),
    unhealthy: whole(1).default(3).describe('Bad answers in a row that make it unwell.'),
    off: z.boolean().default(false).describe('Sends no probes.'),
  })
  .prefault({});

const auth = z
  .union(
    [
      z.strictObject({ bearer: headerSecret.describe('Sent as `authorization: Bearer VALUE`.') }),
      z.strictObject({
        header: z
          .strictObject({
            name: headerName.describe('Its name.'),
            value: headerSecret.describe('Its value.'),
          })
          .describe('A header of its own, such as api-key.'),
      }),
      z.strictObject({
        basic: z
          .strictObject({
            user: z.string().min(1).describe('The user.'),
            password: secret.describe('The password.'),
          })
          .describe('HTTP basic authentication.'),
      }),
    ],
    { error: 'expected one of { bearer }, { header: { name, value } } or { basic: { user, password } }' },
  )
  .describe("How Armature proves itself to the engine. A caller's own authorization never goes upstream.");

const tls = z
  .strictObject({
    ca: file
      .optional()
      .describe('File with the PEM certificates that are trusted instead of the system ones.'),
    cert: file.optional().describe('File with the client certificate, PEM.'),
    key: file.optional().describe('File with its private key, PEM.'),
    serverName: z
      .string()
      .optional()
      .describe('The name that the certificate must carry, where it is not the host.'),
  })
  .describe('For https endpoints.');

const price = z
  .strictObject({
    in: z.number().min(0).default(0).describe('A million tokens of prompts.'),
    out: z.number().min(0).default(0).describe('A million tokens of answers.'),
  })
  .optional()
  .describe('What tokens cost, in a currency of your own; summed up in `armature_cost_total`.');

const served = {
  hardware: z.string().default('unknown').describe('The kind of accelerator, such as nvidia-h100 or cpu.'),
  tier: z.string().optional().describe('Where it stands: edge, mid, large, or a name of your own.'),
  limits: limits.describe('Caps of each endpoint.'),
  timeouts: timeouts.describe('How long an attempt may take.'),
  price,
  context: backendContext,
  effects: z
    .boolean()
    .default(false)
    .describe('Whether its answers act on something: such a request is never copied.'),
  version,
};

const remote = {
  ...served,
  model: z.string().min(1).describe('The name that the engine knows the model by.'),
  endpoints: z
    .array(url)
    .min(1, 'expected one address or more')
    .max(1000)
    .describe('Addresses of equal servers. OpenAI engines: with /v1. OIP engines: without /v2.'),
  auth: auth.optional(),
  tls: tls.optional(),
  probe: probe.describe('Active health checks.'),
  gauges: z
    .union([url, z.array(url).min(1)])
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .optional()
    .describe(
      "The engine's own metrics; a list in the order of `endpoints` where they differ. Default: where a named engine has them, on the port of its API.",
    ),
};

/** Engines that speak OpenAI's API, one dialect; `openai` is any of them or a cloud service. */
export const OPENAI_ENGINES = [
  'openai',
  'vllm',
  'sglang',
  'tgi',
  'llama.cpp',
  'ollama',
  'tensorrt-llm',
] as const;
/** Engines that speak the Open Inference Protocol; `oip` is any of them. */
export const OIP_ENGINES = ['oip', 'triton', 'kserve', 'mlserver', 'openvino', 'torchserve'] as const;

const openai = z.strictObject({
  engine: z.literal(OPENAI_ENGINES).describe('What serves the model.'),
  ...remote,
});
const oip = z.strictObject({ engine: z.literal(OIP_ENGINES).describe('What serves the model.'), ...remote });

const idleStop = durationAboveZero
  .optional()
  .describe(
    'A host without requests for so long is stopped; the next request wakes it. Default: it runs on.',
  );

const local = z.strictObject({
  engine: z.literal('local').describe('What serves the model.'),
  ...served,
  model: name.describe('A name under `models`.'),
  host: z
    .strictObject({
      threads: whole(1, 1024)
        .optional()
        .describe('Threads of one host. Default: half of the cores, 1 at least.'),
      sequences: whole(1, 256).default(4).describe('Chats that are generated together.'),
      contextTokensMax: whole(16).default(2048).describe('Tokens of prompt and answer of one chat.'),
      batchTokensMax: whole(16, 1_000_000)
        .default(8192)
        .describe('Embeddings: tokens that are computed together, padding included; memory grows with them.'),
      prepared: z
        .boolean()
        .default(false)
        .describe(
          'Embeddings: takes token ids and tensors alone, as a route with `prepare` sends them, and keeps no tokenizer.',
        ),
      idleStop,
    })
    .prefault({})
    .describe('The process that serves the model.'),
});

const faults = z
  .strictObject({
    errorRate: z.number().min(0).max(1).default(0).describe('Share of requests answered 500.'),
    resetRate: z.number().min(0).max(1).default(0).describe('Share of answers cut in the middle.'),
    stallRate: z.number().min(0).max(1).default(0).describe('Share of requests that never get a byte.'),
  })
  .prefault({});

const sim = z.strictObject({
  engine: z.literal('sim').describe('What serves the model.'),
  ...served,
  model: z.string().min(1).default('sim').describe('The name that answers carry.'),
  profile: z
    .strictObject({
      prefillTokensPerSecond: z
        .number()
        .positive()
        .default(8000)
        .describe('Of prompts, all sequences together.'),
      decodeTokensPerSecond: z.number().positive().default(60).describe('Of one sequence alone.'),
      decodeTokensPerSecondMax: z
        .number()
        .positive()
        .optional()
        .describe(
          'Of so many sequences that one more brings nothing: each further one adds the time of a token at this rate to a step. Default: `prefillTokensPerSecond`.',
        ),
      stepTokensMax: whole(1)
        .default(2048)
        .describe('Tokens computed in one step, of prompts and of answers; longer prompts are cut.'),
      batchMax: whole(1).default(32).describe('Sequences that run together; others wait.'),
      kvTokensMax: whole(1).default(100_000).describe('Tokens of all running sequences together.'),
      coldStart: duration.prefault('0ms').describe('From the start of the host to its first answer.'),
      jitter: z
        .number()
        .min(0)
        .max(1)
        .default(0)
        .describe('Share by which each step is longer or shorter, at random.'),
      faults: faults.describe('Failures caused on purpose.'),
      seed: whole(0).default(1).describe('Same seed, same jitter and faults.'),
    })
    .prefault({})
    .describe('The simulated accelerator.'),
  host: z.strictObject({ idleStop }).prefault({}).describe('The process that simulates it.'),
});

export const backend = z.discriminatedUnion('engine', [openai, oip, local, sim], {
  error: (issue) =>
    issue.code === 'invalid_union'
      ? `expected one of ${[...OPENAI_ENGINES, ...OIP_ENGINES, 'local', 'sim'].join(', ')}`
      : undefined,
});

const checksum = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 lower-case hexadecimal digits');

const sourceUrl = z
  .string()
  .regex(
    /^(hf:[^/\s]+\/[^/\s]+\/\S+|pip:[^=\s]+==[^/\s]+\/\S+|npm:(@[^/\s]+\/)?[^@/\s]+@[^/\s]+\/\S+|file:\S+)$/,
    'expected hf:OWNER/REPO/FILE, pip:PACKAGE==VERSION/FILE, npm:PACKAGE@VERSION/FILE or file:PATH',
  );

/** Written as a string, or as an object where it has a checksum of its own or something is to be said of it. */
const source = z
  .union(
    [
      sourceUrl,
      z.strictObject({
        source: sourceUrl.describe(
          'hf:OWNER/REPO/FILE (of REPO@REVISION where pinned), pip:PACKAGE==VERSION/FILE, npm:PACKAGE@VERSION/FILE, or file:PATH relative to the configuration.',
        ),
        sha256: checksum.optional().describe('What this file must hash to.'),
        note: z.string().min(1).optional().describe('Said aloud when this source is the one in use.'),
      }),
    ],
    {
      error:
        'expected hf:OWNER/REPO/FILE, pip:PACKAGE==VERSION/FILE, npm:PACKAGE@VERSION/FILE or file:PATH, or { source, sha256, note }',
    },
  )
  .transform((value): { source: string; sha256?: string | undefined; note?: string | undefined } =>
    typeof value === 'string' ? { source: value } : value,
  );

const download = {
  from: z.array(source).min(1).max(20).describe('Where the file comes from; tried in order.'),
  sha256: checksum.optional().describe('What the file must hash to, whichever source it comes from.'),
};

export const model = z.strictObject({
  format: z.literal(['gguf', 'onnx'], { error: 'expected gguf or onnx' }).describe('What the file is.'),
  task: z
    .literal(['chat', 'embedding', 'tensors'], { error: 'expected chat, embedding or tensors' })
    .optional()
    .describe(
      'What the model is served as. Default: chat for gguf; embedding for onnx with a tokenizer, else tensors.',
    ),
  ...download,
  tokenizer: z.strictObject(download).optional().describe('tokenizer.json of an embedding model.'),
});
