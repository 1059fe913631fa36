import { MillraceError, type RedisClock } from '@millrace/shared';
import type { Request } from 'express';
import type { FileRecord } from '../../files/file-record.js';
import type { Files } from '../../files/files.js';
import type { ReceivedFile } from '../../files/receive.js';
import { maySendForm } from '../../http/cors.js';
import { requireIdempotencyKey } from '../../idempotency/idempotency.js';
import { readBy } from '../read-by.js';
import { type FormFields, type FormFile, readForm } from './form.js';
import { MOST_FILENAME, uploadFieldsSchema } from './schema.js';

const CONTROLS = /\p{Cc}/u;

export interface UploadParts {
  files: Files;
  clock: RedisClock;
  maxFileBytes: number;
  /** Whose pages may send forms, beside our own. */
  corsOrigins: readonly string[];
}

/**
 * Reads an upload and stores its file as it comes.
 * @throws MillraceError `forbidden`, and as `readForm`, `Files.receive` and `Files.keep` do: then nothing is left behind.
 */
export async function upload(parts: UploadParts, req: Request, owner: string): Promise<FileRecord> {
  const { files, clock, maxFileBytes, corsOrigins } = parts;
  if (!maySendForm(req.headers, corsOrigins)) {
    throw new MillraceError('forbidden', 'Pages of this origin may not send files here.', {
      field: 'Origin',
    });
  }
  const key = idempotencyKeyOf(req);
  let received: ReceivedFile | undefined;
  let filename = '';
  try {
    const fields = await readForm(req, maxFileBytes, async (file) => {
      filename = nameOf(file);
      // What can be told to be wrong is told before the file is sent.
      if (file.before.has('purpose')) readFields(file.before);
      received = await files.receive(owner, file.content, key);
    });
    const { purpose, ...rest } = readFields(fields);
    const keptSeconds = keptSecondsOf(rest['expires_after[anchor]'], rest['expires_after[seconds]']);
    if (!received) throw invalid('file is missing.', 'file');
    const expiresAt = keptSeconds === undefined ? undefined : clock.now() + keptSeconds * 1000;
    const kept = received;
    // From here on it is no longer ours to discard.
    received = undefined;
    return await files.keep(kept, { filename, purpose, expiresAt });
  } catch (error) {
    if (received) await files.discard(received);
    throw error;
  }
}

function idempotencyKeyOf(req: Request): string | undefined {
  const key = req.headers['idempotency-key'];
  return key === undefined ? undefined : requireIdempotencyKey(String(key));
}

function nameOf({ field, filename }: FormFile): string {
  if (field !== 'file') throw invalid('The file must be in the field "file".', 'file');
  if (filename === '') throw invalid('file must have a filename.', 'file');
  if (CONTROLS.test(filename)) throw invalid('The filename of file must have no control characters.', 'file');
  if (filename.length > MOST_FILENAME) {
    throw invalid(`The filename of file must have at most ${MOST_FILENAME} characters.`, 'file');
  }
  return filename;
}

function readFields(fields: FormFields) {
  return readBy(uploadFieldsSchema, Object.fromEntries(fields));
}

function keptSecondsOf(anchor: string | undefined, seconds: number | undefined): number | undefined {
  if ((anchor === undefined) === (seconds === undefined)) return seconds;
  const missing = anchor === undefined ? 'expires_after[anchor]' : 'expires_after[seconds]';
  throw invalid(`${missing} is missing.`, missing);
}

function invalid(message: string, field: string): MillraceError {
  return new MillraceError('invalid_input', message, { field });
}
