import { type Logger, MillraceError } from '@millrace/shared';
import type { Request, Response } from 'express';
import { contextOf } from '../../http/context.js';
import { hasEnded } from '../../jobs/durable.js';
import type { JobRecord } from '../../jobs/job-record.js';
import type { JobRecords } from '../../jobs/job-records.js';
import type { JobStatus, JobStatuses } from '../../jobs/job-status.js';
import type { ReplyNotices } from '../../jobs/reply-notices.js';
import { jobBody } from './render.js';

/** So often a listener's job is looked at though nothing was heard of it, in ms: its position changes silently. */
const LOOK_MS = 1000;
/** Looks a second of all listeners together: many of them look less often. */
const MOST_LOOKS = 2000;
/** A comment keeps the connection open through proxies that close idle ones, and finds those that are gone. */
const HEARTBEAT_MS = 15_000;

interface Stream {
  record: JobRecord;
  res: Response;
  /** What was said last. */
  said: string;
  lookAt: number;
  busy: boolean;
  /** Something was heard while it was being looked at. */
  again: boolean;
  stop(): void;
}

/** Server-sent events of durable requests: their state whenever it has changed, until they end. */
export class EventStreams {
  readonly #streams = new Set<Stream>();
  readonly #parts: { records: JobRecords; statuses: JobStatuses; notices: ReplyNotices; logger: Logger };
  #looking: NodeJS.Timeout | undefined;
  #beating: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(parts: { records: JobRecords; statuses: JobStatuses; notices: ReplyNotices; logger: Logger }) {
    this.#parts = parts;
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
    const stream: Stream = {
      record,
      res,
      said: typeof heard === 'string' ? heard : '',
      lookAt: 0,
      busy: false,
      again: false,
      stop: () => undefined,
    };
    const unlisten = this.#parts.notices.listen(record.id, () => void this.#look(stream));
    stream.stop = () => {
      unlisten();
      this.#streams.delete(stream);
      if (this.#streams.size === 0) this.#rest();
    };
    this.#streams.add(stream);
    this.#looking ??= setInterval(() => this.#lookAround(), LOOK_MS / 4);
    this.#beating ??= setInterval(() => {
      for (const { res: open } of this.#streams) if (!open.writableNeedDrain) open.write(': \n\n');
    }, HEARTBEAT_MS);
    // Last: one that has gone already is stopped in this very moment.
    context.gone.listen(stream.stop);
    void this.#look(stream);
  }

  /** Ends all: clients come again elsewhere, with what they have heard. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) this.#end(stream);
  }

  #rest(): void {
    clearInterval(this.#looking);
    clearInterval(this.#beating);
    this.#looking = undefined;
    this.#beating = undefined;
  }

  #lookAround(): void {
    const now = performance.now();
    for (const stream of this.#streams) if (stream.lookAt <= now) void this.#look(stream);
  }

  async #look(stream: Stream): Promise<void> {
    if (stream.busy) {
      stream.again = true;
      return;
    }
    stream.busy = true;
    const apart = Math.max(LOOK_MS, (this.#streams.size * 1000) / MOST_LOOKS);
    stream.lookAt = performance.now() + apart;
    try {
      do {
        stream.again = false;
        const { id, owner } = stream.record;
        stream.record = await this.#parts.records.read(id, owner);
        this.#tell(stream, await this.#parts.statuses.of(stream.record));
      } while (stream.again && this.#streams.has(stream));
    } catch (err) {
      if (err instanceof MillraceError && err.code === 'job_not_found') this.#end(stream);
      // Redis is away: the next look tells.
      this.#parts.logger.debug({ err }, 'a job could not be looked at for its listener');
    } finally {
      stream.busy = false;
    }
  }

  #tell(stream: Stream, status: JobStatus): void {
    const { state, itemsDone, position } = status;
    const id = `${state}.${itemsDone}.${position ?? ''}`;
    if (!this.#streams.has(stream)) return;
    // Who doesn't read is told only how things stand by then, so that nothing heaps up.
    if (stream.res.writableNeedDrain && !hasEnded(status)) return;
    if (id !== stream.said) {
      stream.said = id;
      const data = JSON.stringify(jobBody(stream.record, status));
      stream.res.write(`id: ${id}\nevent: ${state}\ndata: ${data}\n\n`);
    }
    if (hasEnded(status)) this.#end(stream);
  }

  #end({ res, stop }: Stream): void {
    stop();
    res.end();
  }
}
