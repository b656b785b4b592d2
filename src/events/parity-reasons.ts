/** What is told of certificates of parity and of sentinels; see reasons.ts. */
export const PARITY_REASONS = {
  'parity-started':
    '{backend} is compared with {reference} on {prompts} golden prompts of {golden}, with a bound of {flipsMax}.',
  'parity-certified':
    '{backend} means the same as {reference}: of {prompts} decisions {flips} differ, {floorFlips} of the reference from itself, beyond it less than {flipsMax}[; {leftOut} more say nothing, as the reference is not sure of them].',
  'parity-rejected':
    '{backend} does not mean the same as {reference}, as {rule}. Of {prompts} decisions {flips} differ, {floorFlips} of the reference from itself.',
  'parity-undecided':
    'Whether {backend} means the same as {reference} was not decided, as {rule}. Of {prompts} decisions {flips} differ, {floorFlips} of the reference from itself.',
  'parity-expired':
    'The certificate that {backend} means the same as {reference} holds no more, as {for}[: {what}].',
  'parity-missing':
    '{backend} has no valid certificate that it means the same as {reference}, which {route} demands: {for}.',
  'parity-shown': '{backend} has the certificate {certificate} that it means the same as {reference}.',
  'flips-below-bound':
    'Decisions that differ beyond what the reference differs from itself are shown to be less than {flipsMax}.',
  'flips-above-half':
    'Decisions that differ beyond what the reference differs from itself are shown to be more than half of {flipsMax}.',
  'harm-shown': 'Right decisions were lost more often than won.',
  'samples-differ': 'Sampled answers are of another distribution.',
  'prompts-used-up': 'All {prompts} golden prompts were used, and decide neither way.',
  'reference-unsure':
    'On more than half of the golden prompts the reference decides otherwise from one time to another, or by a near tie.',
  'floor-too-high': 'What the reference differs from itself by is more than half of {flipsMax}.',
  'answers-missing': 'Too many prompts were not answered.',
  'changed-meanwhile': 'One of the two changed while it was measured.',
  'golden-unfit': 'The golden set does not fit what is answered.',
  'run-stopped': 'It was stopped.',
  'run-interrupted': 'Control ended while it was measured.',
  'golden-refused': 'The golden set {file} cannot be used: {message}.',
  'sentinel-noticed':
    'On {route} {endpoint} was noticed by golden prompts: {for}; {count} of {prompts} decisions.',
} as const satisfies Record<string, string>;

/** The same as parts of other sentences. */
export const PARITY_IN_SHORT = {
  'flips-above-half': 'more decisions differ than half of the bound allows',
  'harm-shown': 'right decisions were lost more often than won',
  'samples-differ': 'sampled answers are of another distribution',
  'prompts-used-up': 'all prompts were used and decide neither way',
  'reference-unsure': 'the reference is not sure of more than half of them',
  'floor-too-high': 'what the reference differs from itself by is more than half of the bound',
  'answers-missing': 'too many prompts were not answered',
  'changed-meanwhile': 'one of the two changed while it was measured',
  'golden-unfit': 'the golden set does not fit what is answered',
  'run-stopped': 'it was stopped',
  'run-interrupted': 'control ended while it was measured',
  'too-old': 'it is too old',
  'reference-changed': 'the reference is another now',
  'backend-changed': 'the backend is another now',
  sentinel: 'a sentinel noticed a change',
  'parity-none': 'it was not compared yet',
  'parity-running': 'it is being compared',
  'parity-rejected': 'it was rejected',
  'parity-undecided': 'its last comparison decided nothing',
  'parity-expired': 'its certificate has expired',
  'sentinel-changed': 'it decides otherwise than it did',
  'sentinel-apart': 'it decides otherwise than the reference',
} as const satisfies Record<string, string>;
