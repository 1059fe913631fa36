import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { StartupError } from '@millrace/shared';

/** A file on this machine, and what it is called at the server. */
export interface UploadedFile {
  path: string;
  name: string;
  bytes: number;
}

export interface Form {
  /** Content-Type, and Content-Length in bytes. */
  type: string;
  length: number;
  /** Read once. */
  parts: AsyncIterable<Buffer>;
}

/** A file as a form of an upload (multipart/form-data, RFC 7578), read from the disk as it is taken. */
export function formOf(file: UploadedFile, onBytes: (bytes: number) => void): Form {
  const boundary = `millrace-${randomBytes(16).toString('hex')}`;
  const head = Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n` +
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${escaped(file.name)}"\r\n` +
      `content-type: application/octet-stream\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    length: head.byteLength + file.bytes + tail.byteLength,
    parts: partsOf(file, head, tail, onBytes),
  };
}

async function* partsOf(
  { path, bytes }: UploadedFile,
  head: Buffer,
  tail: Buffer,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  yield head;
  let sent = 0;
  // No more than was promised, should somebody write to it meanwhile.
  for await (const chunk of createReadStream(path, { end: bytes - 1 })) {
    yield chunk as Buffer;
    sent += (chunk as Buffer).byteLength;
    onBytes(sent);
  }
  if (sent < bytes) {
    throw new StartupError(
      `${path} became shorter while it was sent.`,
      'Run it again when nobody writes to it.',
    );
  }
  yield tail;
}

/** As browsers write names in forms. */
function escaped(name: string): string {
  return name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}
