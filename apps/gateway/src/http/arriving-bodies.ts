import type { IncomingMessage, ServerResponse } from 'node:http';
import { MillraceError } from '@millrace/shared';
import type { DoorErrors } from './context.js';
import { refuseConnection } from './unreadable.js';

/** Longest time between two looks for bodies that come too slowly, in ms. */
const CHECK_MS = 5_000;

/** What a route knows of a body that may take long. */
export interface LongBody {
  /** Whether its client may be waiting for us, and so has a reason to send nothing. */
  waits?(): boolean;
  /** Ends the answer that is being given, once nothing has come for too long; absent: it is cut off. */
  end?(): void;
}

const longBodies = new WeakMap<ServerResponse, LongBody>();

/**
 * Lets the body of one request take longer than `requestTimeoutMs`: from now on it may not stand still for as long,
 * that is, no byte come while we read. Whoever pauses the request keeps it waiting, which is not its client's fault.
 * Ends with the answer: what comes behind that is a body like any other.
 */
export function allowLongBody(req: IncomingMessage, res: ServerResponse, long: LongBody = {}): void {
  if (!req.complete) longBodies.set(res, long);
}

interface Arriving {
  res: ServerResponse;
  /** When its time began, in ms of the process's monotonic clock. */
  since: number;
  /** What its connection had brought by then. */
  bytes: number;
}

/**
 * The requests whose bodies have not come whole: one that takes too long is answered 408, whether or not its route
 * reads it, and its connection closed. Node.js has such a limit too, but for all requests alike.
 */
export class ArrivingBodies {
  readonly #mostMs: number;
  readonly #door: DoorErrors;
  readonly #arriving = new Map<IncomingMessage, Arriving>();
  readonly #timer: NodeJS.Timeout;
  #begun: ServerResponse[] = [];

  /**
   * @param mostMs how long a body may take from the end of its headers.
   * @param door whose errors are told to those that have taken none.
   */
  constructor(mostMs: number, door: DoorErrors) {
    this.#mostMs = mostMs;
    this.#door = door;
    this.#timer = setInterval(() => this.#check(), Math.min(CHECK_MS, mostMs / 4));
    this.#timer.unref();
  }

  /** To be told of every request. Most bodies are there with their headers: those cost one place in a list. */
  begin(res: ServerResponse): void {
    if (this.#begun.push(res) === 1) setImmediate(this.#sort);
  }

  /** Answers all those that have no answer yet. */
  refuseAll(error: MillraceError): void {
    for (const { res } of [...this.#arriving.values()]) {
      if (!res.headersSent && !res.req.complete) this.#refuse(res, error);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  readonly #sort = (): void => {
    const begun = this.#begun;
    this.#begun = [];
    const since = performance.now();
    for (const res of begun) {
      const { req } = res;
      if (req.complete || req.destroyed) continue;
      this.#arriving.set(req, { res, since, bytes: req.socket.bytesRead });
      // What a body has left in its listeners must not stay until the next look.
      req.once('close', () => this.#arriving.delete(req));
    }
  };

  #check(): void {
    const now = performance.now();
    for (const [req, arriving] of this.#arriving) {
      const { res } = arriving;
      if (req.complete) {
        this.#arriving.delete(req);
        continue;
      }
      const long = longBodies.get(res);
      if (long && (res.writableFinished || goesOn(arriving, long))) arriving.since = now;
      if (res.writableFinished) longBodies.delete(res);
      if (arriving.since > now - this.#mostMs) continue;
      if (long?.end) {
        longBodies.delete(res);
        arriving.since = now;
        long.end();
      } else {
        this.#arriving.delete(req);
        this.#refuse(res, new MillraceError('request_timeout'));
      }
    }
  }

  #refuse(res: ServerResponse, error: MillraceError): void {
    if (res.headersSent) res.req.socket.destroy();
    else refuseConnection(res.req.socket, error, this.#door);
  }
}

/** Whether a body has moved since the last look, or stands still for our sake. */
function goesOn(arriving: Arriving, long: LongBody): boolean {
  const { req } = arriving.res;
  const { bytesRead } = req.socket;
  const moved = bytesRead !== arriving.bytes;
  arriving.bytes = bytesRead;
  return moved || !isRead(req) || long.waits?.() === true;
}

/** Whether somebody reads, and has taken all that came. */
function isRead(req: IncomingMessage): boolean {
  return req.readableLength === 0 && (req.readableFlowing === true || req.listenerCount('readable') > 0);
}
