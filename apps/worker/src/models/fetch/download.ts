import { type FileHandle, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionCut, type Opened } from './http.js';
import { nameOf } from './layout.js';
import { type FetchContext, SourceFailure, type WantedFile } from './types.js';

const MAX_TRIES = 30;
/** Tries in a row that brought nothing new before the source is given up. */
const MAX_BARREN = 3;
const BACKOFF_MS = 300;

/** Asks for a file from a byte on; `etag` is that of the bytes already here. */
export type OpenFrom = (offset: number, etag: string | undefined) => Promise<Opened>;

/**
 * Downloads a file into `.part`, going on where an earlier try or an earlier process stopped. A cut
 * connection is taken up again, a bounded number of times.
 *
 * @returns the path of the complete, not yet verified file.
 * @throws SourceFailure when the source won't give it.
 */
export async function downloadResumable(
  wanted: WantedFile,
  openFrom: OpenFrom,
  context: FetchContext,
): Promise<string> {
  const part = partPath(wanted, context.workDir);
  let best = await sizeOf(part);
  let barren = 0;
  let reason = '';
  for (let tries = 0; tries < MAX_TRIES && barren < MAX_BARREN; tries++) {
    if (barren > 0) await sleep(BACKOFF_MS * 2 ** barren, undefined, { signal: context.signal });
    try {
      await downloadOnce(part, wanted, openFrom, context);
      return part;
    } catch (error) {
      if (!(error instanceof ConnectionCut)) throw error;
      reason = error.message;
    }
    const size = await sizeOf(part);
    barren = size > best ? 0 : barren + 1;
    best = Math.max(best, size);
  }
  const upTo = best > 0 ? `; ${best} of ${wanted.bytes} bytes are here and will be kept` : '';
  throw new SourceFailure(`${reason}, time and again${upTo}`, { unreachable: best === 0 });
}

async function dropPart(wanted: WantedFile, workDir: string): Promise<void> {
  const part = partPath(wanted, workDir);
  await rm(part, { force: true });
  await rm(etagPath(part), { force: true });
}

/** Bytes of an unfinished file from an earlier try. */
export async function partSize(wanted: WantedFile, workDir: string): Promise<number> {
  return sizeOf(partPath(wanted, workDir));
}

async function downloadOnce(
  part: string,
  wanted: WantedFile,
  openFrom: OpenFrom,
  { onBytes, workDir }: FetchContext,
): Promise<void> {
  const here = await sizeOf(part);
  if (here === wanted.bytes) return;
  if (here > wanted.bytes) {
    await dropPart(wanted, workDir);
    throw new ConnectionCut('the unfinished file was too long');
  }
  const etag = here > 0 ? await readFile(etagPath(part), 'utf8').catch(() => undefined) : undefined;
  const { answer, body, close } = await openFrom(here, etag);
  try {
    const start = startOf(answer, here, wanted);
    if (start === undefined) {
      await dropPart(wanted, workDir);
      throw new ConnectionCut('it could not go on where the download stopped');
    }
    await rememberEtag(part, answer);
    const handle = await open(part, start === 0 ? 'w' : 'r+');
    let at = start;
    try {
      for await (const piece of body) {
        if (at + piece.length > wanted.bytes) throw new SourceFailure(tooLong(wanted));
        await writeAll(handle, piece, at);
        at += piece.length;
        onBytes(wanted, at, '');
      }
    } catch (error) {
      if (error instanceof SourceFailure) await dropPart(wanted, workDir);
      throw error;
    } finally {
      await handle.close();
    }
    if (at < wanted.bytes) throw new ConnectionCut(`the answer ended at ${at} of ${wanted.bytes} bytes`);
    await rm(etagPath(part), { force: true });
  } finally {
    close();
  }
}

/** The byte an answer starts at, or undefined if it doesn't fit to what is here. */
function startOf(answer: Response, here: number, wanted: WantedFile): number | undefined {
  if (answer.status === 416) return undefined;
  if (answer.status === 206) {
    const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(answer.headers.get('content-range') ?? '');
    if (range === null || Number(range[1]) !== here) return undefined;
    if (range[2] !== '*' && Number(range[2]) !== wanted.bytes) throw new SourceFailure(tooLong(wanted));
    return here;
  }
  const length = answer.headers.get('content-length');
  if (length !== null && Number(length) !== wanted.bytes) {
    throw new SourceFailure(`it has another file, with ${length} bytes instead of ${wanted.bytes}`);
  }
  return 0;
}

/** Only a strong etag may stand in If-Range; without one the hash alone guards a resumed file. */
async function rememberEtag(part: string, answer: Response): Promise<void> {
  const etag = answer.headers.get('etag');
  if (etag?.startsWith('"')) await writeFile(etagPath(part), etag);
  else await rm(etagPath(part), { force: true });
}

async function writeAll(handle: FileHandle, piece: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    const { bytesWritten } = await handle.write(piece, done, piece.length - done, position + done);
    done += bytesWritten;
  }
}

function tooLong(wanted: WantedFile): string {
  return `it has another file, not of ${wanted.bytes} bytes`;
}

/** Named by content, so that what is there of another version's file is never continued. */
function partPath(wanted: WantedFile, workDir: string): string {
  return join(workDir, `${nameOf(`${wanted.name} ${wanted.sha256}`)}.part`);
}

function etagPath(part: string): string {
  return `${part}.etag`;
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found?.size ?? 0;
}
