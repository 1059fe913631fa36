import type { ServerResponse } from 'node:http';

/** About as much is written at once. */
const WRITE_BYTES = 64 * 1024;

/** The answer of one line. */
export interface LineAnswer {
  line: number;
  /** JSON with a line feed behind it, in pieces. */
  pieces: readonly (string | Buffer)[];
  /** Called once the connection has taken it. */
  taken(): void;
}

export interface LineOutputEvents {
  /** Some answers were taken: there may be room for further lines. */
  moved(): void;
  /** The client has stopped reading, or reads again. */
  blocked(blocked: boolean): void;
}

/** Writes the answers of lines as they are done or in the order of the lines, as fast as the client reads. */
export class LineOutput {
  readonly #res: ServerResponse;
  readonly #inOrder: boolean;
  readonly #events: LineOutputEvents;
  /** What is done before its turn. */
  readonly #early = new Map<number, LineAnswer>();
  /** What is to be written, in order. */
  #ready: LineAnswer[] = [];
  /** Number of the line whose turn it is. */
  #next = 1;
  #scheduled = false;
  #blocked = false;

  constructor(res: ServerResponse, inOrder: boolean, events: LineOutputEvents) {
    this.#res = res;
    this.#inOrder = inOrder;
    this.#events = events;
    res.on('drain', () => {
      this.#blocked = false;
      events.blocked(false);
      this.#flush();
    });
  }

  get blocked(): boolean {
    return this.#blocked;
  }

  put(answer: LineAnswer): void {
    if (this.#inOrder) {
      this.#early.set(answer.line, answer);
      for (let next = this.#early.get(this.#next); next; next = this.#early.get(this.#next)) {
        this.#early.delete(this.#next++);
        this.#ready.push(next);
      }
    } else {
      this.#ready.push(answer);
    }
    // Answers come in bursts: what is there by then leaves in one piece.
    if (this.#scheduled || this.#blocked || this.#ready.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#blocked || this.#ready.length === 0 || this.#res.destroyed) return;
    let at = 0;
    while (at < this.#ready.length && !this.#blocked) {
      const from = at;
      at = this.#writeSome(from);
      for (let i = from; i < at; i++) this.#ready[i]?.taken();
    }
    this.#ready = this.#ready.slice(at);
    if (this.#blocked) this.#events.blocked(true);
    this.#events.moved();
  }

  /** Writes what fits one piece, or one answer that doesn't. @returns the index behind the last. */
  #writeSome(from: number): number {
    let text = '';
    for (let at = from; at < this.#ready.length; at++) {
      const { pieces } = this.#ready[at] as LineAnswer;
      for (const piece of pieces) {
        if (typeof piece === 'string') {
          text += piece;
          continue;
        }
        if (text !== '') this.#write(text);
        text = '';
        this.#write(piece);
      }
      if (text.length >= WRITE_BYTES || this.#blocked) {
        if (text !== '') this.#write(text);
        return at + 1;
      }
    }
    if (text !== '') this.#write(text);
    return this.#ready.length;
  }

  #write(piece: string | Buffer): void {
    if (!this.#res.write(piece)) this.#blocked = true;
  }
}
