import { MillraceError, type ModelDescription, type PriorityClass, type Settings } from '@millrace/shared';
import type { Request, Response } from 'express';
import { allowLongBody } from '../../http/arriving-bodies.js';
import type { BodyBytes } from '../../http/body.js';
import { type BodyPieces, readPieces } from '../../http/body-pieces.js';
import {
  contextOf,
  type HttpContext,
  type RecordParts,
  RequestContext,
  recordEnd,
} from '../../http/context.js';
import { noteError, toMillraceError } from '../../http/errors.js';
import type { GatewayState } from '../../http/health.js';
import { timingsOf } from '../../http/respond.js';
import type { Infer } from '../../inference/infer.js';
import { failIfAnyFailed } from '../../inference/item-errors.js';
import { LineGroups } from '../../lines/line-groups.js';
import { type Line, LineSplitter, STREAM_START } from '../../lines/split-lines.js';
import { traceparentOf } from '../new-request.js';
import type { OpenStreams } from '../open-streams.js';
import { LineOutput } from './line-output.js';
import { LinePredictor } from './line-predictor.js';
import { nativeErrors } from './problem.js';
import { writePrediction } from './render.js';
import { LINES_TYPE } from './schema.js';
import { StreamWindow } from './stream-window.js';

/** Lines that are parsed in one turn of the event loop. */
const LINES_A_TURN = 32;
/** How long the client of a stream that is ended gets to read so while it goes on sending, in ms. */
const LINGER_MS = 1000;

export interface LineParts extends RecordParts {
  infer: Infer;
  bodies: BodyBytes;
  state: GatewayState;
  streams: OpenStreams;
  settings: Pick<
    Settings,
    'maxBodyBytes' | 'maxJsonDepth' | 'maxJobItems' | 'maxQueuedItems' | 'maxWaitMs' | 'requestTimeoutMs'
  >;
}

export interface LineOptions {
  model: ModelDescription;
  /** Whether lines are answered in their order, or as they are done. */
  inOrder: boolean;
  priority: PriorityClass;
  /** How long a line waits that does not say so itself, in ms. */
  waitMs: number;
}

/** What a line that is under way takes up. */
interface Taken {
  items: number;
  bytes: number;
}

/**
 * One request of many lines, each answered by a line as a predict call of its own would be. No more is read than the
 * window holds, and an answer leaves the window when the connection has taken it: whoever does not read is not read.
 */
export class LineStream {
  readonly #parts: LineParts;
  readonly #req: Request;
  readonly #res: Response;
  readonly #context: HttpContext;
  readonly #window = new StreamWindow();
  readonly #splitter: LineSplitter;
  readonly #groups: LineGroups;
  readonly #predictor: LinePredictor;
  readonly #output: LineOutput;
  readonly #underWay = new Map<RequestContext, Taken>();
  #body: BodyPieces | undefined;
  /** Lines that have come and are not under way. */
  #unread: Line[] = [];
  /** Number of the last line that was taken on. */
  #last = 0;
  #paused = false;
  #scheduled = false;
  /** Bytes of a line whose end has not come. */
  #held = 0;
  /** The whole body has come. */
  #whole = false;
  /** Why no more lines are taken on. */
  #stopped: MillraceError | undefined;
  #over = false;
  #settle: (error?: MillraceError) => void = () => undefined;

  constructor(
    req: Request,
    res: Response,
    parts: LineParts,
    { model, priority, waitMs, inOrder }: LineOptions,
  ) {
    const { infer, clock, settings } = parts;
    this.#parts = parts;
    this.#req = req;
    this.#res = res;
    this.#context = contextOf(res);
    this.#splitter = new LineSplitter(settings.maxBodyBytes, STREAM_START);
    const { tenant } = this.#context;
    const traceparent = traceparentOf(req.headers);
    // More at once could never be admitted.
    const mostItems = Math.min(settings.maxJobItems, settings.maxQueuedItems);
    const groups = { infer, clock, tenant, priority, traceparent, mostItems: () => mostItems };
    this.#groups = new LineGroups(groups);
    const refused = (): void => this.#window.refused();
    this.#predictor = new LinePredictor({ groups: this.#groups, clock, model, settings, waitMs, refused });
    this.#output = new LineOutput(res, inOrder, {
      moved: () => this.#goOn(),
      blocked: (blocked) => this.#blocked(blocked),
    });
  }

  /**
   * Resolves when the answer is written, or the client has gone.
   * @throws MillraceError for what is wrong before the first line.
   */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#settle = (error) => {
        if (error) reject(error);
        else resolve();
      };
      this.#body = readPieces(this.#req, {
        take: (piece) => this.#take(piece),
        done: () => this.#end(),
        // Of a client that went away its context tells.
        refuse: (error) => error.code !== 'cancelled' && this.#stop(error),
      });
      allowLongBody(this.#req, this.#res, {
        // Whoever waits for an answer of ours may well send nothing until then.
        waits: () => this.#underWay.size > 0,
        end: () => this.#stop(new MillraceError('request_timeout')),
      });
      this.#parts.streams.add(this);
      this.#context.gone.listen(() => this.#abandon());
    });
  }

  /** Takes on no more lines: what is under way is answered, and the rest told to be sent elsewhere. */
  drain(): void {
    const error = new MillraceError('shutting_down', undefined, { retryAfterSeconds: 1 });
    this.#predictor.end(error);
    this.#stop(error);
  }

  #take(piece: Buffer): void {
    if (this.#stopped || this.#over) return;
    this.#unread.push(...this.#splitter.push(piece));
    this.#hold(this.#splitter.held);
    const { bodies } = this.#parts;
    if (bodies.held > bodies.most) {
      this.#stop(new MillraceError('queue_full', undefined, { retryAfterSeconds: 1 }));
    }
    this.#goOn();
  }

  #end(): void {
    if (this.#stopped || this.#over) return;
    this.#unread.push(...this.#splitter.end());
    this.#whole = true;
    this.#hold(0);
    this.#goOn();
  }

  /** Counts what is held of a line among the bodies that are being read. */
  #hold(bytes: number): void {
    this.#parts.bodies.held += bytes - this.#held;
    this.#held = bytes;
  }

  /** Takes on the lines for which there is room, reads on if there is more, and ends when all is answered. */
  #goOn(): void {
    if (this.#over) return;
    let taken = 0;
    while (taken < this.#unread.length && taken < LINES_A_TURN && this.#window.open) {
      this.#start(this.#unread[taken++] as Line);
    }
    this.#unread = taken === 0 ? this.#unread : this.#unread.slice(taken);
    if (taken === LINES_A_TURN) this.#goOnLater();
    const full = this.#unread.length > 0 || !this.#window.open;
    if (full !== this.#paused && !this.#stopped && !this.#whole) {
      this.#paused = full;
      if (full) this.#body?.pause();
      else this.#body?.resume();
    }
    const nothingMore = this.#stopped !== undefined || (this.#whole && this.#unread.length === 0);
    if (nothingMore && this.#underWay.size === 0) this.#finish();
  }

  /** Others have their turn between many lines. */
  #goOnLater(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#goOn();
    });
  }

  #start(line: Line): void {
    if (!this.#res.headersSent) this.#begin();
    const context = new RequestContext(this.#parts.clock.now(), nativeErrors, undefined);
    context.tenant = this.#context.tenant;
    context.model = this.#context.model;
    const taken: Taken = { items: 0, bytes: line.bytes?.byteLength ?? 0 };
    this.#last = line.number;
    this.#underWay.set(context, taken);
    this.#window.enter(taken.bytes);
    void this.#answer(line, context, taken);
  }

  async #answer(line: Line, context: RequestContext, taken: Taken): Promise<void> {
    let status = 200;
    let pieces: (string | Buffer)[];
    try {
      const parsed = this.#predictor.read(line.bytes);
      this.#count(taken, parsed.itemCount, taken.bytes);
      const result = await this.#predictor.run(parsed, context.received);
      if (!parsed.partial) failIfAnyFailed(result);
      const timings = timingsOf(result.stamps, context.received, this.#parts.clock.now());
      const { body } = writePrediction({ ...result, requestId: context.requestId }, timings, undefined);
      pieces = linePieces(line.number, body);
    } catch (thrown) {
      if (!this.#underWay.has(context)) return;
      const error = toMillraceError(thrown);
      noteError(error, context, this.#parts.logger);
      status = error.spec.status;
      pieces = [errorLine(line.number, error, context.requestId)];
    }
    if (!this.#underWay.has(context)) return;
    this.#count(
      taken,
      taken.items,
      pieces.reduce((sum, piece) => sum + piece.length, 0),
    );
    this.#output.put({
      line: line.number,
      pieces,
      taken: () => {
        this.#underWay.delete(context);
        this.#window.leave(taken.items, taken.bytes);
        recordEnd(this.#parts, context, this.#req.method, status);
      },
    });
    if (this.#output.blocked) this.#holdUnread();
  }

  #count(taken: Taken, items: number, bytes: number): void {
    this.#window.count(items - taken.items, bytes - taken.bytes);
    taken.items = items;
    taken.bytes = bytes;
  }

  #begin(): void {
    const { idHeaders, securityHeaders, closesConnection } = this.#context;
    // Proxies that gather answers would hold the lines back.
    const headers = ['Content-Type', LINES_TYPE, 'Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'];
    if (closesConnection) headers.push('Connection', 'close');
    this.#res.writeHead(200, [...idHeaders, ...securityHeaders, ...headers]).flushHeaders();
  }

  /** The client has stopped reading, or reads again. Node.js cuts off one with whom nothing moves for so long. */
  #blocked(blocked: boolean): void {
    this.#req.socket.setTimeout(blocked ? this.#parts.settings.requestTimeoutMs : 0);
    if (blocked) this.#holdUnread();
    else this.#context.sending.unread.forget(this);
  }

  /** What waits for the client to read counts among all answers that do. */
  #holdUnread(): void {
    const bytes = this.#window.bytes + this.#res.writableLength;
    this.#context.sending.unread.hold(this, bytes, () => this.#req.socket.destroy());
  }

  #stop(error: MillraceError): void {
    if (this.#stopped || this.#over || (this.#whole && this.#unread.length === 0)) return;
    this.#stopped = error;
    this.#unread = [];
    this.#hold(0);
    this.#body?.drop();
    this.#goOn();
  }

  #finish(): void {
    this.#leave();
    const stopped = this.#stopped;
    if (!this.#res.headersSent) {
      if (stopped) {
        this.#settle(stopped);
        return;
      }
      this.#begin();
    }
    if (stopped) noteError(stopped, this.#context, this.#parts.logger);
    if (stopped) this.#res.write(errorLine(this.#last + 1, stopped, this.#context.requestId));
    if (stopped && this.#context.closesConnection && !this.#req.complete) this.#linger();
    this.#res.end();
    this.#context.sending.unread.watch(this.#res, this.#res.writableLength);
    this.#settle();
  }

  /** A connection that is closed under a client that sends would take the last lines with it. */
  #linger(): void {
    const { socket } = this.#req;
    const { state } = this.#parts;
    state.enter();
    socket.once('close', () => state.leave());
    this.#res.once('finish', () => socket.end());
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }

  /** The client has gone: its work is taken back. */
  #abandon(): void {
    if (this.#over) return;
    this.#leave();
    this.#predictor.end(new MillraceError('cancelled'));
    this.#groups.abandon();
    for (const context of this.#underWay.keys()) recordEnd(this.#parts, context, this.#req.method, 499);
    this.#underWay.clear();
    this.#settle();
  }

  #leave(): void {
    this.#over = true;
    this.#hold(0);
    this.#parts.streams.delete(this);
    this.#context.sending.unread.forget(this);
  }
}

/** What predict answers, with the line's number in front. */
function linePieces(line: number, body: string | Buffer): (string | Buffer)[] {
  const begin = `{"line":${line},`;
  if (typeof body === 'string') return [`${begin}${body.slice(1)}\n`];
  return [begin, body.subarray(1), '\n'];
}

function errorLine(line: number, error: MillraceError, requestId: string): string {
  return `${JSON.stringify({ line, error: nativeErrors.render(error, requestId) })}\n`;
}
