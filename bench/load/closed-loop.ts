import { type Address, Connection } from './connection.js';
import type { ClosedLoop } from './messages.js';
import type { Recorder } from './recorder.js';
import type { Wire } from './wire.js';

/** A running load. */
export interface Loop {
  /** Resolves when requests are being sent. */
  readonly ready: Promise<void>;
  /** Sends nothing more; resolves when all in flight are answered, or after a while without them. */
  stop(): Promise<void>;
  /** Requests in flight that nobody answered. */
  readonly unanswered: number;
  /** Share of the requests that were sent late although a connection was free: nobody gave us the CPU. */
  readonly lateShare: number;
  /** How far it was behind its own schedule of arrivals when it stopped. */
  readonly behindMs: number;
}

export interface Endpoint {
  addresses: readonly Address[];
  /** Whole requests, head and body, sent in turn. */
  requests: readonly Buffer[];
  /** How a new connection talks. */
  newWire: () => Wire;
}

const DRAIN_MS = 5000;
const POLL_MS = 5;

/** Waits for what is in flight; then closes. */
export async function drain(connections: readonly Connection[]): Promise<void> {
  const deadline = performance.now() + DRAIN_MS;
  while (connections.some((connection) => connection.inFlight) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  for (const connection of connections) connection.close();
}

export function closedLoop(endpoint: Endpoint, { connections }: ClosedLoop, recorder: Recorder): Loop {
  const { addresses, requests, newWire } = endpoint;
  let next = 0;
  let stopped = false;
  const all = Array.from(
    { length: connections },
    (_, i) =>
      new Connection(
        addresses,
        i,
        {
          onReady(connection) {
            if (stopped) return;
            const index = next++ % requests.length;
            const request = requests[index];
            if (!request) return;
            connection.bodyIndex = index;
            connection.since = performance.now();
            connection.send(request, recorder.wants(index));
          },
          onAnswer: (connection, status, body) => recorder.answer(status, connection, body),
          onLost: ({ since }, reason) => {
            if (recorder.counts(since)) recorder.fail(reason);
          },
        },
        newWire,
      ),
  );
  return {
    ready: Promise.resolve(),
    async stop() {
      stopped = true;
      await drain(all);
    },
    get unanswered() {
      return all.filter((connection) => connection.inFlight).length;
    },
    lateShare: 0,
    behindMs: 0,
  };
}
