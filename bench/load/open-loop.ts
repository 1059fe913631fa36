import { arrivalGapMs, seeded } from '#test/support/random.js';
import { drain, type Endpoint, type Loop } from './closed-loop.js';
import { Connection } from './connection.js';
import type { OpenLoop } from './messages.js';
import type { Recorder } from './recorder.js';

/** A send later than this, in ms, although a connection was free, is late by the generator. */
const LATE_MS = 5;
const CONNECT_MS = 30_000;

/**
 * Poisson arrivals. Each is sent on the connection that has been free longest; when none is free it waits
 * here, and its latency counts from its arrival all the same.
 */
export function openLoop(endpoint: Endpoint, options: OpenLoop, recorder: Recorder): Loop {
  const { addresses, requests, newWire } = endpoint;
  const random = seeded(options.seed);
  const free: Connection[] = [];
  const waiting: number[] = [];
  let next = 0;
  let stopped = false;
  let sent = 0;
  let late = 0;
  let behindMs = 0;
  let timer: NodeJS.Timeout | undefined;

  const send = (connection: Connection, arrivedAt: number): void => {
    const index = next++ % requests.length;
    const request = requests[index];
    if (!request) return;
    connection.bodyIndex = index;
    connection.since = arrivedAt;
    connection.send(request, recorder.wants(index));
  };
  const all = Array.from(
    { length: options.connections },
    (_, i) =>
      new Connection(
        addresses,
        i,
        {
          onReady(connection) {
            const arrivedAt = stopped ? undefined : waiting.shift();
            if (arrivedAt === undefined) free.push(connection);
            else send(connection, arrivedAt);
          },
          onAnswer: (connection, status, body) => recorder.answer(status, connection, body),
          onLost: ({ since }, reason) => {
            if (recorder.counts(since)) recorder.fail(reason);
          },
        },
        newWire,
      ),
  );

  let dueAt = 0;
  const tick = (): void => {
    if (stopped) return;
    // Only what is due by now: at a rate beyond its means this loop would never end.
    const now = performance.now();
    while (dueAt <= now) {
      const connection = free.shift();
      if (connection) {
        sent++;
        if (now - dueAt > LATE_MS) late++;
        send(connection, dueAt);
      } else waiting.push(dueAt);
      dueAt += arrivalGapMs(random, options.requestsPerSecond);
    }
    timer = setTimeout(tick, Math.max(0, dueAt - performance.now()));
  };
  const ready = untilOpen(free, options.connections).then((open) => {
    recorder.fail('not connected', options.connections - open);
    dueAt = performance.now() + arrivalGapMs(random, options.requestsPerSecond);
    tick();
  });

  return {
    ready,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      behindMs = Math.max(0, performance.now() - dueAt);
      recorder.fail('never sent', waiting.length);
      await drain(all);
    },
    get unanswered() {
      return all.filter((connection) => connection.inFlight).length;
    },
    get behindMs() {
      return behindMs;
    },
    get lateShare() {
      return late / Math.max(1, sent);
    },
  };
}

/** All connections stand before the first arrival: opening them is no part of the load. @returns how many do. */
async function untilOpen(free: readonly Connection[], count: number): Promise<number> {
  const deadline = performance.now() + CONNECT_MS;
  while (free.length < count && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return free.length;
}
