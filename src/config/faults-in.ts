import type { core } from 'zod';
import { expectation } from './explain.ts';
import { formatPath, type Path } from './places.ts';

/** What is wrong with a value that stands in no file, a line for each fault: `plan[0]: expected a percentage`. */
export function faultsIn(error: core.$ZodError): string[] {
  return error.issues.map((issue) =>
    issue.path.length === 0 ? wordsOf(issue) : `${formatPath(issue.path as Path)}: ${wordsOf(issue)}`,
  );
}

function wordsOf(issue: core.$ZodIssue): string {
  if (issue.code === 'custom') return issue.message;
  if (issue.code === 'unrecognized_keys')
    return `unknown key ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}`;
  const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  return `${isMissing ? 'is missing: ' : ''}${expectation(issue)}`;
}
