import type { Segment } from './batch-record.js';

/** Gathers the lines of one file until they are written as its next object. */
export class SegmentBuffer {
  readonly #prefix: string;
  readonly #epoch: number;
  #lines: Buffer[] = [];
  #bytes = 0;
  #next: number;

  /** @param next number of the next object. @param epoch of the runner: what an older one writes has other keys. */
  constructor(fileId: string, next: number, epoch: number) {
    this.#prefix = segmentPrefix(fileId);
    this.#next = next;
    this.#epoch = epoch;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(line: string): void {
    const bytes = Buffer.from(line);
    this.#lines.push(bytes);
    this.#bytes += bytes.byteLength;
  }

  /** Takes what was gathered, for the store; undefined where that is nothing. */
  take(): { segment: Segment; lines: readonly Buffer[] } | undefined {
    if (this.#bytes === 0) return undefined;
    const key = `${this.#prefix}${String(this.#next).padStart(6, '0')}-${this.#epoch}`;
    const taken = { segment: { key, bytes: this.#bytes }, lines: this.#lines };
    this.#lines = [];
    this.#bytes = 0;
    this.#next += 1;
    return taken;
  }
}

/** Objects of a file have keys that begin so. */
export function segmentPrefix(fileId: string): string {
  return `files/${fileId}/`;
}
