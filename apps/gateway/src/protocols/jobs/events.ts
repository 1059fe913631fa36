import { MillraceError } from '@millrace/shared';
import type { Request, Response } from 'express';
import { contextOf } from '../../http/context.js';
import { hasEnded } from '../../jobs/durable.js';
import type { JobRecord } from '../../jobs/job-record.js';
import type { JobStatus } from '../../jobs/job-status.js';
import type { Follower, JobWatch } from '../../jobs/job-watch.js';
import { jobBody } from './render.js';

/** A comment keeps the connection open through proxies that close idle ones, and finds those that are gone. */
const HEARTBEAT_MS = 15_000;
const BEAT = Buffer.from(': \n\n');
/** How finely heartbeats are spread: all listeners at once would hold up the event loop. */
const BEAT_TICK_MS = 250;

interface StateEvent {
  id: string;
  text: Buffer;
  isLast: boolean;
}

/** What a status says, written once for all who listen. */
const written = new WeakMap<JobStatus, StateEvent>();

function eventOf(record: JobRecord, status: JobStatus): StateEvent {
  let event = written.get(status);
  if (!event) {
    const { state, itemsDone, position } = status;
    const id = `${state}.${itemsDone}.${position ?? ''}`;
    const data = JSON.stringify(jobBody(record, status));
    event = {
      id,
      text: Buffer.from(`id: ${id}\nevent: ${state}\ndata: ${data}\n\n`),
      isLast: hasEnded(status),
    };
    written.set(status, event);
  }
  return event;
}

/** One client that listens. */
class Stream implements Follower {
  /** Ends the following. */
  stop: () => void = () => undefined;
  /** When its next heartbeat is due, in ms of the monotonic clock. */
  beatAt = 0;
  /** Id of the event that was said last. */
  #said: string;
  /** Heard while the client was not reading. */
  #behind: StateEvent | undefined;

  constructor(
    private readonly res: Response,
    heard: string | undefined,
    private readonly onEnd: (stream: Stream) => void,
  ) {
    this.#said = heard ?? '';
  }

  seen(record: JobRecord, status: JobStatus): void {
    this.#say(eventOf(record, status));
  }

  failed(error: unknown): void {
    // Redis is away: a later look tells.
    if (error instanceof MillraceError && error.code === 'job_not_found') this.end();
  }

  beat(): void {
    if (!this.res.writableNeedDrain) this.res.write(BEAT);
  }

  end(): void {
    this.onEnd(this);
    this.res.end();
  }

  #say(event: StateEvent): void {
    // Who doesn't read is told how things stand once it does, so that nothing heaps up.
    if (this.res.writableNeedDrain && !event.isLast) {
      if (!this.#behind) this.res.once('drain', () => this.#catchUp());
      this.#behind = event;
      return;
    }
    this.#behind = undefined;
    if (event.id !== this.#said) {
      this.#said = event.id;
      this.res.write(event.text);
    }
    if (event.isLast) this.end();
  }

  #catchUp(): void {
    const event = this.#behind;
    this.#behind = undefined;
    if (event) this.#say(event);
  }
}

/** Server-sent events of durable requests: their state whenever it has changed, until they end. */
export class EventStreams {
  readonly #streams = new Set<Stream>();
  readonly #watch: JobWatch;
  #beating: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(watch: JobWatch) {
    this.#watch = watch;
  }

  /**
   * Begins to tell; `Last-Event-ID` names what the client has heard last, which is not said again.
   * @throws MillraceError `shutting_down`.
   */
  open(record: JobRecord, req: Request, res: Response): void {
    if (this.#closed) throw new MillraceError('shutting_down', undefined, { retryAfterSeconds: 1 });
    const context = contextOf(res);
    const headers = [...context.idHeaders, ...context.securityHeaders];
    headers.push('Content-Type', 'text/event-stream; charset=utf-8', 'Cache-Control', 'no-store');
    // Proxies that gather answers would hold the events back.
    headers.push('X-Accel-Buffering', 'no');
    res.writeHead(200, headers);
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    res.flushHeaders();
    const heard = req.headers['last-event-id'];
    const stream = new Stream(res, typeof heard === 'string' ? heard : undefined, this.#forget);
    // Those that came together are not told together.
    stream.beatAt = performance.now() + HEARTBEAT_MS * (0.5 + Math.random() / 2);
    this.#streams.add(stream);
    this.#beating ??= setInterval(() => this.#beat(), BEAT_TICK_MS);
    stream.stop = this.#watch.follow(record, stream);
    // Last: one that has gone already is stopped in this very moment.
    context.gone.listen(() => this.#forget(stream));
  }

  /** Ends all: clients come again elsewhere, with what they have heard. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.end();
  }

  readonly #forget = (stream: Stream): void => {
    stream.stop();
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#beating);
    this.#beating = undefined;
  };

  #beat(): void {
    const now = performance.now();
    for (const stream of this.#streams) {
      if (stream.beatAt > now) continue;
      stream.beatAt = now + HEARTBEAT_MS;
      stream.beat();
    }
  }
}
