import { deflate, gzip } from 'node:zlib';

export type AnswerCoding = 'gzip' | 'deflate';

/** The server's preference where the client has none: gzip is the one that all read alike. */
const CODINGS: readonly AnswerCoding[] = ['gzip', 'deflate'];
/** JSON and text; tensors in bytes hardly shrink. */
const COMPRESSIBLE = /^(?:text\/|application\/(?:[a-z0-9.-]+\+)?json\b)/;
const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;
/** The fastest: on embeddings the slowest saves 4 percent more for five times the work. */
const OPTIONS = { level: 1 };

/** What a client's `Accept-Encoding` comes to. */
export interface CodingChoice {
  /** The coding that it likes best of ours, if it takes one and likes no coding less. */
  coding: AnswerCoding | undefined;
  /** Whether it refuses an answer without coding. */
  required: boolean;
}

/** Reads `Accept-Encoding` (RFC 9110, 12.5.3); what it can't read of it counts as not there. */
export function chooseCoding(header: string): CodingChoice {
  const qualities = new Map<string, number>();
  for (const entry of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim());
    const given = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    if (name === '' || (given !== undefined && !QUALITY.test(given))) continue;
    qualities.set(name === 'x-gzip' ? 'gzip' : name, given === undefined ? 1 : Number(given));
  }
  const others = qualities.get('*');
  const identity = qualities.get('identity') ?? (others === 0 ? 0 : undefined);
  let best = 0;
  let coding: AnswerCoding | undefined;
  for (const each of CODINGS) {
    const quality = qualities.get(each) ?? others ?? 0;
    if (quality > best && quality >= (identity ?? 0)) {
      best = quality;
      coding = each;
    }
  }
  return { coding, required: identity === 0 };
}

/** Which answers are compressed, and how. */
export class Compression {
  readonly #fromBytes: number;

  /** @param fromBytes the size from which answers are; 0 for never, unless a client takes no other. */
  constructor(fromBytes: number) {
    this.#fromBytes = fromBytes;
  }

  /** Whether the client's header decides about an answer of this kind and size. */
  varies(contentType: string, bytes: number): boolean {
    return this.#fromBytes > 0 && bytes >= this.#fromBytes && COMPRESSIBLE.test(contentType);
  }

  codingOf(accepted: string | undefined, contentType: string, bytes: number): AnswerCoding | undefined {
    if (accepted === undefined || bytes === 0) return undefined;
    const varies = this.varies(contentType, bytes);
    if (!varies && !accepted.includes('=0')) return undefined;
    const { coding, required } = chooseCoding(accepted);
    return varies || required ? coding : undefined;
  }
}

/** Compresses beside the event loop; undefined if that fails. */
export function compress(body: string | Buffer, coding: AnswerCoding): Promise<Buffer | undefined> {
  const run = coding === 'gzip' ? gzip : deflate;
  return new Promise((resolve) => {
    run(body, OPTIONS, (error, compressed) => resolve(error ? undefined : compressed));
  });
}
