import { MillraceError } from '@millrace/shared';
import { RequestContext, recordEnd } from '../../http/context.js';
import { noteError, toMillraceError } from '../../http/errors.js';
import type { OpenStreams } from '../open-streams.js';
import type { Call, CallHandler, Method } from './call.js';
import { type InferParts, inferMessage } from './infer.js';
import { decodeInferRequest } from './infer-request.js';
import { encodeStreamAnswer, encodeStreamError } from './infer-response.js';
import { grpcErrors, messageOf } from './status.js';

/** Requests of one stream that may be under way; more wait in the connection. */
const MOST_IN_FLIGHT = 256;
/** Bytes of answers that the client has not read, beyond which no more requests are taken. */
const MOST_UNREAD = 1024 * 1024;

/**
 * ModelStreamInfer: many requests on one call, under way together and answered in their order, as Triton answers
 * them: there are clients that go by it. One that fails is answered with its error; the stream goes on.
 */
export function streamInfer(parts: InferParts, streams: OpenStreams): Method {
  return {
    scope: 'infer',
    streams: true,
    open(call) {
      if (call.header('idempotency-key') !== undefined) {
        const text = 'idempotency-key names one request: it has no meaning for a stream.';
        throw new MillraceError('invalid_input', text, { field: 'idempotency-key' });
      }
      const stream = new InferStream(call, parts, streams);
      streams.add(stream);
      return stream;
    },
  };
}

class InferStream implements CallHandler {
  readonly #call: Call;
  readonly #parts: InferParts;
  readonly #streams: OpenStreams;
  readonly #inFlight = new Set<RequestContext>();
  /** Whether the next message is asked for. {@link Call} asks for the first. */
  #reading = true;
  #halfClosed = false;
  #draining = false;
  /** Resolves when all requests so far are answered. */
  #answered: Promise<void> = Promise.resolve();

  constructor(call: Call, parts: InferParts, streams: OpenStreams) {
    this.#call = call;
    this.#parts = parts;
    this.#streams = streams;
  }

  message(message: Buffer): void {
    this.#reading = false;
    const { clock, state } = this.#call.parts;
    const context = new RequestContext(clock.now(), grpcErrors, undefined);
    context.tenant = this.#call.context.tenant;
    this.#inFlight.add(context);
    state.enter();
    this.#answered = this.#answer(context, message, this.#answered);
    this.#goOn();
  }

  halfClose(): void {
    this.#halfClosed = true;
    this.#goOn();
  }

  drain(): void {
    this.#draining = true;
    this.#goOn();
  }

  over(): void {
    this.#streams.delete(this);
    for (const context of this.#inFlight) {
      context.gone.tell();
      this.#settle(context, 499);
    }
  }

  /** @param earlier resolves when the requests before this one are answered. */
  async #answer(context: RequestContext, message: Buffer, earlier: Promise<void>): Promise<void> {
    let status = 200;
    let answer: Buffer;
    let model = '';
    let id = '';
    try {
      const infer = decodeInferRequest(message);
      model = infer.modelName;
      id = infer.id;
      answer = encodeStreamAnswer(await inferMessage(this.#parts, this.#call, context, infer));
    } catch (thrown) {
      if (!this.#inFlight.has(context)) return;
      const error = toMillraceError(thrown);
      noteError(error, context, this.#call.parts.logger);
      status = error.spec.status;
      answer = encodeStreamError(messageOf(error), model, id);
    }
    await earlier;
    if (!this.#inFlight.has(context)) return;
    // A request counts as under way until its answer is out: a client that does not read gets no more in.
    this.#call.send(answer, () => {
      this.#settle(context, status);
      this.#goOn();
    });
  }

  #settle(context: RequestContext, status: number): void {
    if (!this.#inFlight.delete(context)) return;
    const { parts, path } = this.#call;
    recordEnd(parts, context, path, status);
    parts.state.leave();
  }

  /** Asks for the next message if there is room, and ends the call when all is answered. */
  #goOn(): void {
    if (this.#call.ended) return;
    if (this.#draining || this.#halfClosed) {
      if (this.#inFlight.size > 0) return;
      if (this.#halfClosed) this.#call.finish();
      else this.#call.fail(new MillraceError('shutting_down', undefined, { retryAfterSeconds: 1 }));
    } else if (!this.#reading && this.#inFlight.size < MOST_IN_FLIGHT && this.#call.unread < MOST_UNREAD) {
      this.#reading = true;
      this.#call.read();
    }
  }
}
