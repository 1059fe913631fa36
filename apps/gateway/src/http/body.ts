import type { IncomingMessage } from 'node:http';
import { MillraceError } from '@millrace/shared';

const BODY = { field: 'body' };
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

/**
 * Reads a whole body of at most `maxBytes`, whatever its headers claim.
 * @throws MillraceError `body_too_large`; `cancelled` when the client goes away in the middle.
 */
export function readBody(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tooLarge = (): void => {
      // What still comes is read and dropped, so that the client gets to read the answer.
      req.removeAllListeners('data').resume();
      reject(new MillraceError('body_too_large', `The body is larger than ${maxBytes} bytes.`, BODY));
    };
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) {
      tooLarge();
      return;
    }
    const chunks: Buffer[] = [];
    let total = 0;
    req.on('data', (chunk: Buffer) => {
      total += chunk.byteLength;
      if (total > maxBytes) tooLarge();
      else chunks.push(chunk);
    });
    req.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, total)));
    req.on('error', (cause) => reject(new MillraceError('cancelled', undefined, {}, { cause })));
  });
}
