import type { IncomingMessage } from 'node:http';
import { MillraceError } from '@millrace/shared';

const BODY = { field: 'body' };
/** Bodies that are being read are soon read. */
const RETRY_SECONDS = 1;
const JSON_TYPE = /^application\/json *(?:; *charset *= *"?utf-8"? *)?;? *$/i;

/**
 * Checks that a body claims to be plain UTF-8 JSON.
 * @throws MillraceError `unsupported_media_type`.
 */
export function requireJsonType(req: IncomingMessage): void {
  const type = req.headers['content-type'];
  if (type === undefined || !JSON_TYPE.test(type)) {
    throw new MillraceError(
      'unsupported_media_type',
      'The header Content-Type must be application/json, in UTF-8.',
      { field: 'Content-Type' },
    );
  }
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new MillraceError(
      'unsupported_media_type',
      'The header Content-Encoding must be left out: the body must not be compressed.',
      {
        field: 'Content-Encoding',
      },
    );
  }
}

/** The bytes of all bodies that are being read in a gateway: clients that send slowly add up. */
export class BodyBytes {
  readonly most: number;
  held = 0;

  constructor(most: number) {
    this.most = most;
  }
}

/**
 * Reads a whole body of at most `maxBytes`, whatever its headers claim.
 * @param all counts it among those that are read at the same time.
 * @throws MillraceError `body_too_large`; `queue_full` when all together are; `cancelled` when the client goes
 * away in the middle.
 */
export function readBody(req: IncomingMessage, maxBytes: number, all?: BodyBytes): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let total = 0;
    const letGo = (): void => {
      if (all) all.held -= total;
      total = 0;
    };
    const refuse = (error: MillraceError): void => {
      // What still comes is read and dropped, so that the client gets to read the answer.
      req.removeAllListeners('data').resume();
      letGo();
      reject(error);
    };
    const tooLarge = (): void =>
      refuse(new MillraceError('body_too_large', `The body is larger than ${maxBytes} bytes.`, BODY));
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) {
      tooLarge();
      return;
    }
    req.on('data', (chunk: Buffer) => {
      total += chunk.byteLength;
      if (all) all.held += chunk.byteLength;
      if (total > maxBytes) tooLarge();
      else if (all && all.held > all.most) {
        refuse(new MillraceError('queue_full', undefined, { retryAfterSeconds: RETRY_SECONDS }));
      } else chunks.push(chunk);
    });
    req.on('end', () => {
      const body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, total);
      letGo();
      resolve(body);
    });
    req.on('error', (cause) => {
      letGo();
      reject(new MillraceError('cancelled', undefined, {}, { cause }));
    });
  });
}
