/** What a release does, and waits for, as its evidence comes in; see releases/canary. */
export const CANARY_REASONS = {
  'release-edges-frozen':
    'What is slow was fixed from {requests} requests of what is replaced, in {classes} classes of size.',
  'release-canary-begins': 'Nothing more was needed before callers meet it: {share} of the sessions.',
  'release-step-passed':
    'It lasted {lastedMs}, and {sessions} sessions were met without evidence that leans against it: on to {share} of the sessions.',
  'release-step-ruled-out':
    'That it does harm {ratio} times as often was ruled out after {sessions} sessions: on to {share} of the sessions.',
  'release-certified':
    'Certified in {metrics} after {sessions} sessions: that it does harm {ratio} times as often is ruled out, but for a chance of {alpha}.',
  'release-certified-as-stable-broken':
    'Of the requests of what it replaces a share of {failing} fails; that it fails in {rate} or more itself was ruled out after {sessions} sessions, with a chance of error of {alpha}.',
  'release-promoted-by-operator': 'An operator said so.',
  'release-metric-worse': 'It does worse in {metric}: the evidence is {e}, and {at} was enough.',
  'release-metrics-worse':
    'It is worse on the whole: the mean of the evidence of all its metrics is {e}, and {at} was enough.',
  'release-deadline-passed': 'The time for {phase} was over, and it still waited[, as {for}].',
  'release-aborted-by-operator': 'An operator said so.',
  'release-gate-failed': 'It did not pass the gate {gate}.',
  'release-worse-after-promotion':
    'Once it had all of the traffic it did worse in {metric}: a share of {rate} of first requests, where {bound} is allowed; the evidence is {e}, and {at} was enough.',
  'release-gates-open': 'The gate {gate} is not passed yet.',
  'release-edges-wanting': '{requests} requests of what is replaced were seen: too few to say what is slow.',
  'release-pairs-wanting': '{pairs} of its answers to copies were compared, and {min} are needed.',
  'release-step-unripe':
    'This step has met {sessions} sessions, of {sessionsMin} at least, and has lasted {lastedMs}, of {timeMinMs} at least.',
  'release-evidence-leans':
    'The evidence in {metric} leans against it, at {e}; {at} would be enough to roll it back, and 1 or less is needed to go on.',
  'release-certificates-wanting':
    'It is not certified in {metric}: the evidence against harm of {ratio} times as often is {e}, and {at} is needed.',
  'release-evidence-broken':
    'A worker told what cannot be, in {member}: nothing is concluded in its favour any more.',
  'release-arms-skewed':
    'Sessions do not fall into the arms by the share: the evidence is {e}, beyond {at}, and nothing is concluded in its favour any more.',
} as const;

/** As parts of sentences. */
export const CANARY_IN_SHORT = {
  'release-gates-open': 'a gate was open',
  'release-edges-wanting': 'too little was seen to say what is slow',
  'release-pairs-wanting': 'too few answers were compared',
  'release-step-unripe': 'its step had not met what it takes at least',
  'release-evidence-leans': 'the evidence leant against it',
  'release-certificates-wanting': 'it was not certified',
  'release-evidence-broken': 'evidence was broken',
  'release-arms-skewed': 'sessions did not fall by the share',
} as const;
