/** What happens to a release, and why where that is not for its machine to say. */
export const RELEASE_REASONS = {
  'release-started':
    'A release of {route} to {to} was begun by {actor}[, in steps of {plan} percent][, over within {deadlineMs}][, past these gates first: {gates}].',
  'release-decided': 'What is to be done of the release of {route} to {to} was decided: {do}[ to {share}].',
  'release-share-changed':
    '{to} has a share of {share} of the sessions of {route}[, from {from}], by snapshot {snapshot}[; workers that did not report it in time: {behind}].',
  'release-edges-told':
    'What is slow for {route} is told to the workers, by snapshot {snapshot}[; workers that did not report it in time: {behind}].',
  'release-promoted':
    '{to} has all of the traffic of {route}, by snapshot {snapshot}[; workers that did not report it in time: {behind}].',
  'release-rolled-back':
    '{route} goes back from {to} to what it had[, by snapshot {snapshot}][; but the targets of the file stay: {left}][; without {removed}, which is not there any more][; no endpoint was ready of {unready}][; workers that did not report it in time: {behind}].',
  'release-held': 'The release of {route} to {to} is held.',
  'release-resumed':
    'The release of {route} to {to} goes on, with a share of {share}: the edit of the file was taken back.',
  'release-ended': 'The release of {route} to {to} is over: it stays with all of the traffic.',
  'evidence-gathered':
    'Worker {worker} saw {canaryRequests} requests of the canary on {route}, {canaryFailed} failed, and {otherRequests} others, {otherFailed} failed, with a share of {share}.',
  // Releases: why
  'release-capacity-wanting': '{backend} has no endpoint that could answer.',
  'release-stable-wanting':
    'None of {backends} has an endpoint that could answer: the only copy that does stays.',
  'release-redirect-refused': 'With what is wanted the configuration would not be valid: {message}.',
  'release-file-edited':
    'The targets of {route} were edited in the file since the release began: they are in force, and it waits for a word, or for the edit to be taken back, until its deadline.',
  'release-not-judged': 'Its evidence could not be judged, which is a fault in Armature: {message}.',
  'release-route-removed': 'There is no route {route} any more.',
  'release-backend-removed': 'There is no backend {backend} any more.',
  'release-watched': '{to} was watched for as long as the plan says.',
} as const satisfies Record<string, string>;
