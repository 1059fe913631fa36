import type { Redis } from 'ioredis';

/**
 * Values of many MB, to and from Redis. The client library holds each command and each reply whole, next to the
 * caller's own copy, until the garbage collector comes: in pieces, a large tensor takes its size in this process
 * once, not three times.
 */

const PIECE_BYTES = 1 << 20;
/** Pieces on the way at the same time. */
const IN_FLIGHT = 4;

type Reader = Pick<Redis, 'getrangeBuffer' | 'strlen'>;
type Writer = Pick<Redis, 'set' | 'setrange' | 'rename' | 'unlink'>;

/**
 * Sets a key to what `parts` are together. A reader sees all of it or what was there before.
 * @param lifeMs time to live, ms.
 */
export async function writeValue(
  redis: Writer,
  key: string,
  parts: readonly Buffer[],
  lifeMs: number,
): Promise<void> {
  const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
  if (bytes <= PIECE_BYTES) {
    await redis.set(key, Buffer.concat(parts, bytes), 'PX', lifeMs);
    return;
  }
  // Lives no longer than the whole, should nobody be there to clear it away.
  const draft = `${key}:draft`;
  try {
    await redis.set(draft, '', 'PX', lifeMs);
    // Redis makes room once.
    await redis.setrange(draft, bytes - 1, '\0');
    let offset = 0;
    await inTurn(piecesOf(parts), async (piece) => {
      const at = offset;
      offset += piece.byteLength;
      await redis.setrange(draft, at, piece);
    });
    await redis.rename(draft, key);
  } catch (error) {
    redis.unlink(draft).catch(() => undefined);
    throw error;
  }
}

/** A whole value; undefined where there is none, or where it changed while it was read. */
export async function readValue(redis: Reader, key: string): Promise<Buffer | undefined> {
  const first = await redis.getrangeBuffer(key, 0, PIECE_BYTES - 1);
  if (first.byteLength < PIECE_BYTES) return first.byteLength === 0 ? undefined : first;
  const bytes = await redis.strlen(key);
  if (bytes < PIECE_BYTES) return undefined;
  const whole = Buffer.allocUnsafeSlow(bytes);
  first.copy(whole);
  let sound = true;
  await inTurn(offsetsOf(bytes), async (at) => {
    const end = Math.min(at + PIECE_BYTES, bytes);
    const piece = await redis.getrangeBuffer(key, at, end - 1);
    if (piece.byteLength === end - at) piece.copy(whole, at);
    else sound = false;
  });
  // The first bytes of a reply are its generation: with another, the pieces are not of one reply.
  const again = await redis.getrangeBuffer(key, 0, 3);
  return sound && again.equals(first.subarray(0, again.byteLength)) ? whole : undefined;
}

function* piecesOf(parts: readonly Buffer[]): Generator<Buffer> {
  for (const part of parts) {
    for (let at = 0; at < part.byteLength; at += PIECE_BYTES) yield part.subarray(at, at + PIECE_BYTES);
  }
}

function* offsetsOf(bytes: number): Generator<number> {
  for (let at = PIECE_BYTES; at < bytes; at += PIECE_BYTES) yield at;
}

/** Works through what comes, a few at a time, each begun in order. */
async function inTurn<T>(all: Generator<T>, work: (each: T) => Promise<void>): Promise<void> {
  const runner = async (): Promise<void> => {
    for (const each of all) await work(each);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, runner));
}
