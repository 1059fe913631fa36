import { Readable } from 'node:stream';
import { MillraceError } from '@millrace/shared';
import { type FileStore, Incoming, requireKey, type StoredObject } from './store.js';

const MIB = 1024 * 1024;
/** Most parts that an object may be uploaded in. */
const MOST_PARTS = 10_000;
/** The least that a part may be, but for the last. It is held in memory until it is sent: so many of one object at once. */
const PART_BYTES = 5 * MIB;
const PARTS_AT_ONCE = 2;
/** Objects that are removed at once: one by one, since not every server takes a list of them. */
const REMOVED_AT_ONCE = 16;
const CONNECT_MS = 5_000;
/** How long a server may take to begin its answer, in ms; a part has been sent to it by then. */
const ANSWER_MS = 120_000;
/** A client that reads slowly holds a connection: with AWS's few, a number of those would stop everybody else. */
const CONNECTIONS = { keepAlive: true, maxSockets: 1000 };
/** As servers other than AWS name it. */
const NO_ROOM = new Set([
  'XMinioStorageFull',
  'QuotaExceeded',
  'QuotaExceededException',
  'InsufficientStorage',
]);
const INSUFFICIENT_STORAGE = 507;

export interface S3Place {
  bucket: string;
  /** Before every key: empty, or ending in "/". */
  prefix: string;
  /** Of a server other than AWS; empty for AWS. */
  endpoint: string;
  /** Largest object that will be written: its parts are made large enough for it. */
  maxObjectBytes: number;
}

type Loaded = Awaited<ReturnType<typeof load>>;

/** What it takes to speak S3, loaded when it is first needed. */
async function load(endpoint: string) {
  const [sdk, { Upload }] = await Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')]);
  const client = new sdk.S3Client({
    ...(endpoint === '' ? {} : { endpoint, forcePathStyle: true }),
    // Other servers need not know the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: ANSWER_MS,
      throwOnRequestTimeout: true,
      // An answer may be read as slowly as its reader likes.
      socketTimeout: 0,
      httpAgent: CONNECTIONS,
      httpsAgent: CONNECTIONS,
    },
  });
  return { sdk, Upload, client };
}

/** Objects in a bucket of S3, or of a server that speaks it. */
export class S3Store implements FileStore {
  readonly #place: S3Place;
  #loaded: Promise<Loaded> | undefined;

  constructor(place: S3Place) {
    this.#place = place;
  }

  async put(key: string, content: AsyncIterable<Uint8Array>): Promise<number> {
    requireKey(key);
    const incoming = new Incoming(content);
    const { maxObjectBytes } = this.#place;
    return await this.#asking(async ({ Upload, client }) => {
      const upload = new Upload({
        client,
        params: { ...this.#at(key), Body: Readable.from(incoming, { objectMode: false }) },
        partSize: Math.max(PART_BYTES, Math.ceil(maxObjectBytes / MOST_PARTS)),
        queueSize: PARTS_AT_ONCE,
      });
      await upload.done();
      return incoming.bytes;
    }, incoming);
  }

  async read(key: string, start = 0, end?: number): Promise<Readable> {
    requireKey(key);
    return await this.#asking(async ({ sdk, client }) => {
      const Range =
        start === 0 && end === undefined ? undefined : `bytes=${start}-${end === undefined ? '' : end - 1}`;
      if (end !== undefined && end <= start) {
        await client.send(new sdk.HeadObjectCommand(this.#at(key)));
        return Readable.from([], { objectMode: false });
      }
      try {
        const { Body } = await client.send(new sdk.GetObjectCommand({ ...this.#at(key), Range }));
        return Body as Readable;
      } catch (error) {
        // There is nothing from here on.
        if (statusOf(error) === 416) return Readable.from([], { objectMode: false });
        throw error;
      }
    });
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) requireKey(key);
    await this.#asking(async ({ sdk, client }) => {
      const left = keys.values();
      const remove = async (): Promise<void> => {
        for (const key of left) await client.send(new sdk.DeleteObjectCommand(this.#at(key)));
      };
      await Promise.all(Array.from({ length: Math.min(keys.length, REMOVED_AT_ONCE) }, remove));
    });
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    const { bucket, prefix: before } = this.#place;
    let ContinuationToken: string | undefined;
    do {
      const page = await this.#asking(({ sdk, client }) =>
        client.send(
          new sdk.ListObjectsV2Command({
            Bucket: bucket,
            Prefix: before + prefix,
            ContinuationToken,
          }),
        ),
      );
      for (const { Key = '', Size = 0, LastModified } of page.Contents ?? []) {
        yield {
          key: Key.slice(before.length),
          bytes: Size,
          modifiedAt: LastModified?.getTime() ?? Date.now(),
        };
      }
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
  }

  async close(): Promise<void> {
    const loaded = await this.#loaded?.catch(() => undefined);
    loaded?.client.destroy();
  }

  #at(key: string): { Bucket: string; Key: string } {
    const { bucket, prefix } = this.#place;
    return { Bucket: bucket, Key: prefix + key };
  }

  async #asking<T>(ask: (loaded: Loaded) => Promise<T>, incoming?: Incoming): Promise<T> {
    this.#loaded ??= load(this.#place.endpoint);
    const loaded = await this.#loaded;
    try {
      return await ask(loaded);
    } catch (error) {
      throw incoming?.fault ? incoming.fault.error : faultOf(error);
    }
  }
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}

function faultOf(error: unknown): MillraceError {
  const { name } = error as Error;
  const options = { cause: error };
  // A bucket that is not there is no file's fault.
  if (name === 'NoSuchKey' || (name === 'NotFound' && statusOf(error) === 404)) {
    return new MillraceError('file_not_found', undefined, {}, options);
  }
  if (NO_ROOM.has(name) || statusOf(error) === INSUFFICIENT_STORAGE) {
    return new MillraceError('storage_full', undefined, {}, options);
  }
  return new MillraceError('storage_unavailable', undefined, { retryAfterSeconds: 1 }, options);
}
