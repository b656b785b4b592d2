/** What is told of drift; see reasons.ts. */
export const DRIFT_REASONS = {
  'drift-reference-frozen':
    'What {feature} was in {rows} rows of {route} at {backend} is the reference that follows is held against.',
  'drift-reference-renewed': 'What comes now to {route} at {backend} is a new reference, as {for}.',
  'drift-detected':
    '{feature} at {backend} has changed: {change}, {direction}, since about {since} rows before. The evidence is {evidence} of {bar}.',
  'drift-confirmed': '{feature} at {backend} stays changed: {change}, {direction}.',
  'drift-passed': '{feature} at {backend} is again what it was: {change}.',
  'retraining-asked': 'The hook of {route} was told of the change at {backend}[; its job is {job}].',
  'retraining-failed':
    'The hook of {route} could not be told of the change at {backend}, tried {attempts} times: {error}.',
} as const;

/** As parts of sentences. */
export const DRIFT_IN_SHORT = {
  'model-changed': 'its model was changed',
  'settings-changed': 'what is watched was changed',
  asked: 'was asked for',
} as const;
