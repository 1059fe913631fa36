import type { ServerHttp2Stream } from 'node:http2';
import {
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type StatusObject,
} from '@grpc/grpc-js';
import { type KeyScope, MillraceError, type Settings } from '@millrace/shared';
import type { ApiKeys } from '../../admission/api-keys.js';
import type { BodyBytes } from '../../http/body.js';
import { type DoorErrors, type RecordParts, RequestContext, recordEnd } from '../../http/context.js';
import { noteError, toMillraceError } from '../../http/errors.js';
import type { GatewayState } from '../../http/health.js';
import type { UnreadAnswers } from '../../http/unread-answers.js';
import type { Arrivals } from './arrivals.js';
import { endOf, errorOfLibrary, grpcErrors } from './status.js';

/** How the library ends a call by itself; it does not export the name. */
type LibraryEnd = Parameters<ServerInterceptingCallInterface['sendStatus']>[0];

/** A client that reads nothing of a waiting answer for this long, in ms, is cut off. */
const UNREAD_MS = 10_000;
/** Fewer waiting bytes are not counted: connections have so much under way all the time. */
const COUNTED_UNREAD = 16 * 1024;
const NGHTTP2_CANCEL = 8;
/** How much earlier than by our clock a client may find its deadline over, in ms. */
const DEADLINE_SLACK_MS = 100;

export interface CallParts extends RecordParts {
  state: GatewayState;
  keys: ApiKeys;
  bodies: BodyBytes;
  unreadAnswers: UnreadAnswers;
  arrivals: Arrivals;
  settings: Pick<Settings, 'maxBodyBytes'>;
}

/** One method of a service. */
export interface Method {
  /** What an API key must be for; absent: no key is asked for. */
  scope?: KeyScope;
  /** Whether the client sends many messages; each of them is then a request of its own. */
  streams?: boolean;
  /** How errors are written and where they count; absent: as of this door. */
  door?: DoorErrors;
  /** Begins a call; messages come only once they are asked for with {@link Call.read}. */
  open(call: Call): CallHandler;
}

/** What a method does with its call. Whatever it throws ends the call. */
export interface CallHandler {
  message(message: Buffer): void | Promise<void>;
  /** The client sends no more. */
  halfClose(): void;
  /** The call is over, in whatever way: nothing can be sent any more. */
  over?(): void;
}

/**
 * One call, from its headers to its trailers. It takes the library's call over where interceptors do: the library's
 * own handlers would see a unary call only once its whole message has come, and would read sixteen messages of a
 * stream ahead.
 */
export class Call {
  readonly context: RequestContext;
  readonly path: string;
  readonly parts: CallParts;
  /** Whether it is answered as an earlier call under the same Idempotency-Key was. */
  replayed = false;
  readonly #metadata: Metadata;
  readonly #base: ServerInterceptingCallInterface;
  readonly #method: Method;
  readonly #stream: ServerHttp2Stream;
  #handler: CallHandler | undefined;
  /** Bytes of a message that is not whole yet. */
  #partial = 0;
  #ended = false;
  /** Whether a client that does not read is cut off. */
  #watched = false;

  constructor(
    base: ServerInterceptingCallInterface,
    metadata: Metadata,
    path: string,
    method: Method,
    parts: CallParts,
  ) {
    this.#base = base;
    this.#metadata = metadata;
    this.path = path;
    this.#method = method;
    this.parts = parts;
    this.#stream = streamOf(base);
    const door = method.door ?? grpcErrors;
    this.context = new RequestContext(parts.clock.now(), door, this.header('x-request-id'));
    // Also the library's own way of ending a call.
    const send = base.sendStatus.bind(base);
    base.sendStatus = (end) => {
      if (this.#ended) return;
      send(this.#endOfLibrary(end));
    };
    this.#end = (error) => {
      this.#ended = true;
      const end = endOf(this.context, error);
      if (this.replayed) end.metadata.set('idempotency-replayed', 'true');
      send(end);
    };
  }

  /** Sends the status, once. */
  readonly #end: (error?: MillraceError) => void;

  /** Whether the end was sent. */
  get ended(): boolean {
    return this.#ended;
  }

  /** When the client gives up, in epoch ms of this process's clock; Infinity where it did not say. */
  get deadline(): number {
    const deadline = this.#base.getDeadline();
    return typeof deadline === 'number' ? deadline : deadline.getTime();
  }

  /** Bytes that were sent and that the client has not read. */
  get unread(): number {
    return this.#stream.writableLength;
  }

  /** A metadata entry of the client, the first if there are several. */
  header(name: string): string | undefined {
    const value = this.#metadata.get(name)[0];
    return typeof value === 'string' ? value : undefined;
  }

  /** Asks for the next message, or the half-close. */
  read(): void {
    this.#base.startRead();
  }

  /** Sends a message; `sent` is called once the connection has taken it. */
  send(message: Buffer, sent?: () => void): void {
    this.#base.sendMessage(message, () => {
      if (this.unread === 0) this.#stream.setTimeout(0);
      if (this.unread < COUNTED_UNREAD) this.parts.unreadAnswers.forget(this);
      sent?.();
    });
    const { unread } = this;
    if (unread === 0) return;
    if (!this.#watched) this.#stream.once('timeout', this.#cut);
    this.#watched = true;
    this.#stream.setTimeout(UNREAD_MS);
    if (unread >= COUNTED_UNREAD) this.parts.unreadAnswers.hold(this, unread, this.#cut);
  }

  /** Ends the call well. */
  finish(): void {
    if (!this.#ended) this.#end();
  }

  /** Ends the call with an error, if it has not ended. */
  fail(thrown: unknown): void {
    if (this.#ended) return;
    const error = toMillraceError(thrown);
    noteError(error, this.context, this.parts.logger);
    this.#end(error);
  }

  /** Begins: asks who calls, and for the first message. */
  open(): void {
    this.#stream.on('data', this.#count);
    if (!this.#method.streams) {
      this.parts.state.enter();
      this.parts.arrivals.await(this);
    }
    try {
      const { scope } = this.#method;
      if (scope) {
        this.context.tenant = this.parts.keys.authenticate(
          { authorization: this.header('authorization'), 'x-api-key': this.header('x-api-key') },
          scope,
        );
      }
      this.#handler = this.#method.open(this);
      this.read();
    } catch (error) {
      this.fail(error);
    }
  }

  take(message: Buffer): void {
    this.#arrived();
    if (this.#ended) return;
    try {
      this.#handler?.message(message)?.catch((error: unknown) => this.fail(error));
    } catch (error) {
      this.fail(error);
    }
  }

  halfClose(): void {
    this.#arrived();
    if (!this.#ended) this.#handler?.halfClose();
  }

  /** To be called once, when the trailers are sent or the call is cut off. */
  over(): void {
    this.#arrived();
    const { context, parts } = this;
    parts.unreadAnswers.forget(this);
    const gone = !this.#ended;
    this.#ended = true;
    // A client that gives up at its deadline may be heard before ours has come.
    if (gone && this.deadline - Date.now() < DEADLINE_SLACK_MS) {
      context.error = new MillraceError('deadline_exceeded');
    }
    if (gone) context.gone.tell();
    this.#handler?.over?.();
    const status = gone && !context.error ? 499 : (context.error?.spec.status ?? 200);
    if (!this.#method.streams) {
      recordEnd(parts, context, this.path, status);
      parts.state.leave();
    } else if (context.error) recordEnd(parts, context, this.path, status);
  }

  /** The library ends a call by itself for a message it can't take and at the call's deadline. */
  #endOfLibrary(end: LibraryEnd): StatusObject {
    this.#ended = true;
    const error = errorOfLibrary(end, this.parts.settings.maxBodyBytes);
    noteError(error, this.context, this.parts.logger);
    this.context.gone.tell();
    return endOf(this.context, error);
  }

  readonly #count = (chunk: Buffer): void => {
    if (this.#ended) return;
    const { bodies, arrivals } = this.parts;
    if (this.#partial === 0) arrivals.await(this);
    this.#partial += chunk.byteLength;
    bodies.held += chunk.byteLength;
    if (bodies.held <= bodies.most) return;
    this.#arrived();
    this.fail(new MillraceError('queue_full', undefined, { retryAfterSeconds: 1 }));
  };

  readonly #cut = (): void => this.#stream.close(NGHTTP2_CANCEL);

  /** What was being read is whole, or given up. */
  #arrived(): void {
    this.parts.arrivals.settle(this);
    this.parts.bodies.held -= this.#partial;
    this.#partial = 0;
  }
}

/** Gives every call of a known method to {@link Call}; the library answers the others. */
export function takeCalls(methods: ReadonlyMap<string, Method>, parts: CallParts): ServerInterceptor {
  return ({ path }, base) => {
    const method = methods.get(path);
    if (!method) return new ServerInterceptingCall(base);
    return new TakenCall(base, (metadata) => new Call(base, metadata, path, method, parts));
  };
}

class TakenCall extends ServerInterceptingCall {
  readonly #base: ServerInterceptingCallInterface;
  readonly #open: (metadata: Metadata) => Call;

  constructor(base: ServerInterceptingCallInterface, open: (metadata: Metadata) => Call) {
    super(base);
    this.#base = base;
    this.#open = open;
  }

  /** The listener that the library would have here is its own handler's. */
  override start(): void {
    let call: Call | undefined;
    this.#base.start({
      onReceiveMetadata: (metadata) => {
        call = this.#open(metadata);
        call.open();
      },
      onReceiveMessage: (message) => call?.take(message),
      onReceiveHalfClose: () => call?.halfClose(),
      onCancel: () => call?.over(),
    });
  }
}

/**
 * The HTTP/2 stream of a call. The library keeps it to itself, but tells in no other way of bytes that come, and of
 * answers that are not read.
 */
function streamOf(base: ServerInterceptingCallInterface): ServerHttp2Stream {
  const { stream } = base as unknown as { stream?: ServerHttp2Stream };
  if (!stream) throw new Error('A call of this version of @grpc/grpc-js has no stream.');
  return stream;
}
