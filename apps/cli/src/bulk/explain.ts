import { StartupError } from '@millrace/shared';
import { NoAnswer, Refused } from './faults.js';

const SCOPES = 'Use one of the scopes infer and jobs: `millrace keys NAME` makes it.';

/** What can be done about an error that a server answers with. */
const STEPS: Record<string, string> = {
  forbidden: SCOPES,
  not_found: 'Is it a Millrace, and one that has batches?',
  body_too_large: 'Pack the file with gzip, split it, or raise MILLRACE_MAX_FILE_BYTES at the server.',
  file_limit:
    'Delete files that are needed no more (DELETE /v1/files/ID), or raise the limits at the server.',
  job_limit: 'Wait until some of them have ended, or cancel some.',
  storage_full: 'Make room where the server keeps its files (MILLRACE_FILES_URL).',
  batch_not_found: 'GET /v1/batches lists those of this key.',
  batch_ended: 'Its results are fetched by --resume.',
  idempotency_key_reused: 'The file was changed while it was sent: run it again.',
};

/**
 * What went wrong, with what to do about it.
 * @param comeBack the command that goes on, where there is a batch.
 */
export function explained(
  error: unknown,
  { url, hasKey, comeBack }: { url: string; hasKey: boolean; comeBack: string | undefined },
): unknown {
  const options = { cause: error };
  const goOn = comeBack === undefined ? '' : `The batch is at the server; come back to it with: ${comeBack}`;
  if (error instanceof NoAnswer) {
    const step = goOn || 'Start a server with `millrace up`, or say where it is by --url.';
    return new StartupError(`${error.message}.`, step, options);
  }
  if (error instanceof Refused) {
    if (error.status === 401) {
      return hasKey
        ? new StartupError(`${url} does not know this API key.`, SCOPES, options)
        : new StartupError(
            `${url} asks for an API key.`,
            'Set MILLRACE_API_KEY, or pass --api-key.',
            options,
          );
    }
    const isOurs = error.status < 500;
    const step =
      STEPS[error.code] ??
      (goOn || (isOurs ? 'See `millrace batch --help`.' : "The server's log has more of it."));
    return new StartupError(error.message, step, options);
  }
  // Of this machine's files.
  if (error instanceof Error && 'syscall' in error) {
    const step = goOn || 'Name another file or folder, or change this one.';
    return new StartupError(`${error.message}.`, step, options);
  }
  return error;
}
