/** How one connection talks: it has at most one request in flight. */
export interface Wire {
  /** Sent before anything else; with one, the server may speak unasked. */
  readonly greeting?: Buffer;
  /** HTTP status of the answer, or the one that stands for the protocol's own. */
  readonly status: number;
  /** The server takes no more requests on this connection. */
  readonly closes: boolean;
  /** What the server says that it took, in ms. */
  readonly serverMs: number | undefined;
  /** Of an answer that is kept. */
  readonly body: Buffer;
  /** Begins a new answer; its body is kept only if asked for. */
  expect(keep: boolean): void;
  /** A request's bytes as they go out now. */
  framed?(request: Buffer): Buffer;
  /** @returns whether the answer is complete. @throws Error on what can't be followed. */
  feed(bytes: Buffer): boolean;
  /** What the protocol wants said in return for what was fed. */
  takeReply?(): Buffer | undefined;
}
