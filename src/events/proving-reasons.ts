/** What a backend shows before callers meet it: by its answers to copies, and in load tests. */
export const PROVING_REASONS = {
  'answers-compared':
    'Of answers of {backend} to copies, {pairs} were compared with those of callers: {worse} were worse and {better} better beyond the margin[, {difference} worse on average][; the worst was to {example}]. {skips} could not be compared.',

  'stress-passed':
    'Of {requests} requests of the load test a share of {errors} failed, 99 of 100 took {p99Ms} at most, and {perSecond} a second were answered[; its process took {memoryBytes} at most].',
  'stress-failed': 'The load test of {backend} was not passed, as {for}.',
  'stress-errors':
    'Of {requests} requests of the load test a share of {errors} failed, and {errorsMax} may[; {dropped} found no place within the caps].',
  'stress-too-few': '{answered} answers of the load test are too few to say what they take.',
  'stress-slow': 'Of the answers to the load test 99 of 100 took up to {p99Ms}, and may take {p99MaxMs}.',
  'stress-memory': 'The process took {memoryBytes} of memory under load, and may take {memoryMaxBytes}.',
  'stress-memory-unknown':
    'A cap of memory is set, {memoryMaxBytes}, and what the process took under load cannot be read: only that of a host on this machine can, on Linux.',
  'stress-over-caps':
    'The load of {asked} at once is more than {endpoints} endpoints may take together, {cap}.',
  'stress-on-callers':
    '{backend} answers callers of {route} there: nothing that does is put under a load test.',
} as const;

export const PROVING_IN_SHORT = {
  'stress-errors': 'too many requests failed',
  'stress-too-few': 'there were too few answers',
  'stress-slow': 'its answers took too long',
  'stress-memory': 'its process took too much memory',
  'stress-memory-unknown': 'the memory of its process cannot be read',
  'stress-over-caps': 'the load is more than it may take',
  'stress-on-callers': 'it answers callers',
} as const;
