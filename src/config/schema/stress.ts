import { z } from 'zod';
import { durationAboveZero, rate, size, whole } from './values.ts';

/** What a backend has to show in a load test before callers meet it. */
export const stress = z
  .strictObject({
    rate: rate.optional().describe('An open loop: so many requests over time, whatever comes back.'),
    concurrency: whole(1, 10_000)
      .optional()
      .describe('A closed loop instead: so many at all times, the next when one has ended.'),
    duration: durationAboveZero
      .prefault('30s')
      .describe('How long is counted, after a fifth of it that is not.'),
    tokensIn: whole(1, 1_000_000).default(128).describe('Tokens of a prompt.'),
    tokensOut: whole(1, 1_000_000).default(64).describe('Tokens that an answer may have.'),
    kind: z
      .literal(['chat', 'embeddings', 'tensors'], { error: 'expected chat, embeddings or tensors' })
      .optional()
      .describe(
        'What is asked for. Default: `tensors` of engines of the Open Inference Protocol, else streamed chats.',
      ),
    p99Max: durationAboveZero
      .prefault('2s')
      .describe('What 99 of 100 may take: to the first token of a stream, to the answer else.'),
    errorsMax: z
      .number({ error: 'expected a share from 0 to 1' })
      .min(0, 'expected a share from 0 to 1')
      .max(1, 'expected a share from 0 to 1')
      .default(0)
      .describe('Share that may fail.'),
    tokensInFlightMax: whole(1)
      .optional()
      .describe(
        'Cap: tokens of prompts and answers at once at one endpoint; a load that could exceed it is refused.',
      ),
    memoryMax: size
      .optional()
      .describe("Cap: memory of the host's process, where the backend is served by a host of ours."),
  })
  .describe(
    'A load test that the backend has to pass before a caller meets it, within its own caps. Default: none.',
  );

export type StressSettings = z.output<typeof stress>;
