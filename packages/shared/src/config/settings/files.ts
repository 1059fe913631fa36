import { filePlace, httpUrl, whole } from '../kinds.js';
import type { SettingSpec } from '../spec.js';

const KIB = 1024;
const GIB = 1024 ** 3;

/** The gateway: the files that clients store for bulk work. */
export const FILES = {
  filesUrl: {
    env: 'MILLRACE_FILES_URL',
    flag: 'files-url',
    of: 'gateway',
    help: 'Where files are kept: a folder, or s3://BUCKET/PREFIX. All gateways must see the same one, and no other installation: with gateways on several machines set it to S3 or to a folder that they share. Region and credentials of S3 come from the environment as AWS names them (AWS_REGION, AWS_ACCESS_KEY_ID ...).',
    defaultText: '`files` in the data folder',
    schema: filePlace.default(''),
  },
  s3Endpoint: {
    env: 'MILLRACE_S3_ENDPOINT',
    flag: 's3-endpoint',
    of: 'gateway',
    help: "URL of a server that speaks S3 where that is not AWS. Buckets are then named in the path, not in the host's name.",
    schema: httpUrl.default(''),
  },
  maxFileBytes: {
    env: 'MILLRACE_MAX_FILE_BYTES',
    flag: 'max-file-bytes',
    of: 'gateway',
    help: 'Largest file that may be uploaded, in bytes; a larger one is refused with 413.',
    schema: whole(KIB).default(8 * GIB),
  },
  maxFileBytesPerKey: {
    env: 'MILLRACE_MAX_FILE_BYTES_PER_KEY',
    flag: 'max-file-bytes-per-key',
    of: 'gateway',
    help: 'Bytes of files that one API key may keep; more are refused with 429. What batches write counts, and is never refused.',
    schema: whole(KIB).default(64 * GIB),
  },
  maxFilesPerKey: {
    env: 'MILLRACE_MAX_FILES_PER_KEY',
    flag: 'max-files-per-key',
    of: 'gateway',
    help: 'Files that one API key may keep; more are refused with 429. Each takes about 1 KB in Redis.',
    schema: whole(1).default(10_000),
  },
  fileKeepMs: {
    env: 'MILLRACE_FILE_KEEP_MS',
    flag: 'file-keep-ms',
    of: 'gateway',
    help: 'How long a file is kept, in ms; then it is deleted. A client may ask for less.',
    schema: whole(1000).default(30 * 86_400_000),
  },
} as const satisfies Record<string, SettingSpec>;
