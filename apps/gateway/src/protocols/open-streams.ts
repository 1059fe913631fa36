/** A call that goes on until somebody ends it. */
interface Stream {
  /** Ends it once what it has taken is answered. */
  drain(): void;
}

/** The streams that are open, to be told when the gateway drains. */
export class OpenStreams {
  readonly #streams = new Set<Stream>();
  #draining = false;

  add(stream: Stream): void {
    this.#streams.add(stream);
    if (this.#draining) stream.drain();
  }

  delete(stream: Stream): void {
    this.#streams.delete(stream);
  }

  drain(): void {
    this.#draining = true;
    for (const stream of this.#streams) stream.drain();
  }
}
