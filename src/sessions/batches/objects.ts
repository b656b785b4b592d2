import { seconds } from '../answers.ts';
import type { StoredBatch } from '../files/store/rows.ts';

/** OpenAI's batch object. */
export function batchObject(batch: StoredBatch) {
  const { since, errors } = batch;
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: errors && { object: 'list', data: errors },
    input_file_id: batch.inputFile,
    completion_window: batch.completionWindow,
    status: batch.status,
    output_file_id: batch.outputFile ?? null,
    error_file_id: batch.errorFile ?? null,
    created_at: seconds(batch.createdMs),
    in_progress_at: seconds(since.in_progress),
    expires_at: seconds(batch.expiresMs),
    finalizing_at: seconds(since.finalizing),
    completed_at: seconds(since.completed),
    failed_at: seconds(since.failed),
    expired_at: seconds(since.expired),
    cancelling_at: seconds(since.cancelling),
    cancelled_at: seconds(since.cancelled),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    metadata: batch.metadata,
  };
}
