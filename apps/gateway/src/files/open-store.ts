import { join } from 'node:path';
import type { Settings } from '@millrace/shared';
import { LocalStore } from './local-store.js';
import { S3Store } from './s3-store.js';
import type { FileStore } from './store.js';

const S3 = /^s3:\/\/([^/]+)\/?(.*)$/;

/** Of what is written to S3 some parts are held in memory, 15 MB at most: so many uploads at once are enough. */
const S3_UPLOADS = 32;

export type StoreSettings = Pick<Settings, 'filesUrl' | 's3Endpoint' | 'dataDir' | 'maxFileBytes'>;

/** The storage that the settings name. Nothing is asked of it yet. */
export function openFileStore({ filesUrl, s3Endpoint, dataDir, maxFileBytes }: StoreSettings): FileStore {
  const [, bucket, path = ''] = S3.exec(filesUrl) ?? [];
  if (bucket === undefined) return new LocalStore(filesUrl || join(dataDir, 'files'));
  const prefix = path.replace(/\/*$/, '');
  return new S3Store({
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint: s3Endpoint,
    maxObjectBytes: maxFileBytes,
  });
}

/** Uploads that a gateway takes at once; others wait, and take nothing. */
export function uploadsAtOnce({ filesUrl }: StoreSettings): number {
  return S3.test(filesUrl) ? S3_UPLOADS : Number.POSITIVE_INFINITY;
}
