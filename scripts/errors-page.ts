import { ERRORS } from '../src/kernel/errors.ts';

/** docs/errors.md: every error that a caller can get, from the registry that the program answers with. */
export function errorsPage(): string {
  const rows = Object.entries(ERRORS).map(([code, { status, type, retryable, meaning }]) =>
    [`\`${code}\``, status, `\`${type}\``, retryable ? 'yes' : 'no', meaning].join(' | '),
  );
  return `# Errors

This page is made from \`src/kernel/errors.ts\` by \`npm run docs\`; change it there.

On \`/v1\` an error is OpenAI's object, and SDKs raise the exception that belongs to its status:

\`\`\`json
{"error": {"message": "...", "type": "invalid_request_error", "param": "model", "code": "unknown_route"}}
\`\`\`

On \`/v2\` it is the Open Inference Protocol's: \`{"error": "..."}\`.

| code | status | type | retryable | meaning |
| --- | --- | --- | --- | --- |
${rows.map((row) => `| ${row} |`).join('\n')}

**Retryable** says whether the same request, unchanged, may succeed later. 429 and 503 carry \`retry-after\` in whole
seconds; \`x-should-retry: false\` stands where a client's own retry cannot help.

**An engine's own errors.** An engine's 400, 404, 409, 413, 415 and 422 keep their status and reason and count against
no endpoint. Its 401 and 403 are a fault of the configuration, not of the caller: they end as 502 \`backend_error\`,
without the engine's words. Its 408, 425, 429 and 503 cool that endpoint while another is tried; when none is left they
end as 429 or 503 with \`retry-after\`.

**In a stream.** Before the first content an error has its own status, as above. After it the status is spent: the
error comes as an event, \`data: {"error": {...}}\`, and the connection ends without \`[DONE]\`. A stream without
\`[DONE]\` is not whole.

**Why it happened.** Every answer carries \`x-armature-id\`; \`armature why ID\` tells what led to it.
`;
}
