/** What the runner asks of the generator's process, and what it gets back. */
export interface LoadSpec {
  /** `http://127.0.0.1:PORT/path`; a fragment only tells loads apart. */
  url: string;
  /** The same path of further gateways: connections are spread over all, and turn from one that goes away. */
  otherUrls?: readonly string[];
  /** Sent in turn. Text is JSON. */
  bodies: readonly (string | BytesBody)[];
  /** How a request goes over the wire; absent: HTTP/1.1, a connection a request in flight. */
  wire?: 'grpc';
  /** Items in one request, to turn requests into items a second. */
  itemsPerRequest: number;
  loop: ClosedLoop | OpenLoop;
  warmUpSeconds: number;
  seconds: number;
  /** An answer later than this after its request was sent, in ms, is counted as late. */
  deadlineMs?: number;
  check?: AnswerCheck | undefined;
}

/** A body of bytes, in base64 for the way to the generator, and the headers that belong to it. */
export interface BytesBody {
  base64: string;
  headers?: Readonly<Record<string, string>>;
}

/** Each connection sends its next request when its last is answered. */
export interface ClosedLoop {
  kind: 'closed';
  connections: number;
}

/** Requests arrive at random at a fixed mean rate, whether or not earlier ones are answered. */
export interface OpenLoop {
  kind: 'open';
  requestsPerSecond: number;
  connections: number;
  seed: number;
}

/** Which answers' values are looked at, and what they must be. */
export interface AnswerCheck {
  /**
   * The way to the values in an answer of JSON, `['outputs']`, where base64 stands for float32; or `floats`: the
   * answer ends with them, float32 and little-endian, as binary protocols have it.
   */
  path: readonly (string | number)[] | 'floats';
  /** Right vectors, one an item, by the index of the body that asks for them. */
  expected: Readonly<Record<number, readonly (readonly number[])[]>>;
  /** Largest difference of an element. */
  tolerance: number;
}

export interface Latencies {
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

export interface LoadReport {
  /** Answered with 200 within the measured time. */
  answered: number;
  requestsPerSecond: number;
  itemsPerSecond: number;
  /** Of those, in ms; in an open loop from the intended arrival. */
  latencyMs: Latencies;
  /** Whatever was not answered with 200, with how often: `429`, `ECONNRESET`, `unanswered`. */
  failures: Record<string, number>;
  /** Answered with 200, but past the deadline. */
  pastDeadline: number;
  /** What a server took to refuse (429, 503), in ms, as its `Server-Timing` tells. */
  refusedMs: Latencies;
  /** Answers whose values were compared, and those that were not as expected. */
  checked: number;
  wrong: number;
  /** CPU that the generator itself took, in ms, and as a share of the whole machine. */
  cpuMs: number;
  cpuShare: number;
  /** Share of an open loop's requests that were sent more than 5 ms late with a connection free. */
  lateShare: number;
  /** Set when the generator, not the server, was the limit. */
  generatorLimit?: string;
}

export type ToGenerator = { type: 'load'; spec: LoadSpec };
export type FromGenerator =
  | { type: 'measuring' }
  | { type: 'report'; report: LoadReport }
  | { type: 'failed'; message: string };
