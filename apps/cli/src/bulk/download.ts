import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { NoAnswer } from './faults.js';
import type { Patience } from './patience.js';
import type { BulkServer } from './server.js';

/**
 * Fetches a file of the server's. Where it breaks off, it goes on; at `path` there is nothing new before all of it is
 * there.
 * @throws what the asking fails with, or the writing.
 */
export async function download(
  server: BulkServer,
  fileId: string,
  path: string,
  patience: Patience,
  onBytes: (bytes: number, of: number) => void,
): Promise<void> {
  const bytes = await patience.with(() => server.bytesOf(fileId));
  await replaceFile(path, async ({ append, clear }) => {
    let at = 0;
    await patience.with(async (advanced) => {
      if (at === bytes) return;
      const answer = await server.content(fileId, at);
      // Somebody on the way does not know of ranges.
      if (at > 0 && answer.statusCode !== 206) {
        await clear();
        at = 0;
      }
      for await (const chunk of piecesOf(answer, server.url)) {
        await append(chunk);
        at += chunk.byteLength;
        advanced();
        onBytes(at, bytes);
      }
      if (at !== bytes) throw new NoAnswer(server.url, new Error(`${at} of ${bytes} bytes came`));
    });
  });
}

interface NewFile {
  append(chunk: Buffer): Promise<void>;
  /** Forgets what was appended. */
  clear(): Promise<void>;
}

/** Writes a file beside its place and moves it there when it is whole and on the disk. */
export async function replaceFile(path: string, write: (file: NewFile) => Promise<void>): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.part`;
  const file = await open(temporary, 'ax');
  try {
    await write({ append: (chunk) => file.appendFile(chunk), clear: () => file.truncate() });
    await file.sync();
    await file.close();
    await rename(temporary, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}

async function* piecesOf(answer: IncomingMessage, url: string): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of answer) yield chunk as Buffer;
  } catch (error) {
    throw new NoAnswer(url, error);
  }
}
