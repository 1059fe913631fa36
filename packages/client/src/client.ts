import {
  InferAnswer,
  type ModelInfo,
  type PredictedOutput,
  type PredictInputs,
  type Prediction,
} from './answers.js';
import { decodeInfer, encodeInfer } from './binary.js';
import { type Clock, systemClock } from './clock.js';
import { MillraceConnectionError } from './errors.js';
import type {
  CallOptions,
  EmbedOptions,
  InferOptions,
  MillraceClientOptions,
  PredictOptions,
  PredictStreamOptions,
  RunOptions,
} from './options.js';
import { LinesBody, readLine, type StreamedOf } from './stream.js';
import type { Tensor } from './tensors.js';
import { type Call, type CallLimits, type HttpAnswer, Transport } from './transport.js';
import { embeddingsOf, jsonOf, modelPath, newKey } from './wire.js';

const TIMEOUT_MS = 60_000;
const RETRIES = 2;
const MAX_TIMER_MS = 2 ** 31 - 1;
const JSON_TYPE = 'application/json';
const LINES_TYPE = 'application/x-ndjson';

/**
 * A client of one Millrace gateway, for Node.js 20 or newer and browsers. It holds no connection of its own and
 * needs no closing.
 *
 * Every call rejects with a `MillraceApiError` when the server answers with an error, a
 * `MillraceConnectionError` when no answer comes, a `MillraceTimeoutError` after `timeoutMs`, a
 * `MillraceProtocolError` when the answer can't be understood, and with its signal's reason when that aborts.
 *
 * What fails for a passing reason is tried again while time is left: 429, 503 and failures to connect; with an
 * `Idempotency-Key`, and where nothing runs, also 502, 504 and connections that broke. `Retry-After` is obeyed.
 */
export class MillraceClient {
  readonly #base: string;
  readonly #options: MillraceClientOptions;
  readonly #transport: Transport;

  /** @throws TypeError or RangeError when an option is wrong. */
  constructor(options: MillraceClientOptions);
  /** @param clock for tests. */
  constructor(options: MillraceClientOptions, clock: Clock);
  constructor(options: MillraceClientOptions, clock: Clock = systemClock) {
    this.#base = new URL(options.baseUrl).href.replace(/[?#].*$/, '').replace(/\/+$/, '');
    this.#options = options;
    this.#transport = new Transport(options.fetch ?? globalThis.fetch, clock);
    this.#limits({});
  }

  /**
   * Runs a model on its natural values, one or a list: texts, or objects of tensors in JSON. Numbers are as the
   * server writes them in JSON: `embed` and `infer` are exact and faster for many.
   */
  async predict<const Inputs extends PredictInputs, const Partial extends boolean = false>(
    model: string,
    inputs: Inputs,
    options: PredictOptions<Partial> = {},
  ): Promise<Prediction<PredictedOutput<Inputs> | (Partial extends true ? null : never)>> {
    const { version, partial, parameters, waitMs } = options;
    const path = `/v1/models/${modelPath(model, version)}/predict`;
    const body = JSON.stringify({ inputs, partial, parameters, waitMs });
    const answer = jsonOf<Prediction<PredictedOutput<Inputs>>>(
      await this.#post(path, body, JSON_TYPE, options),
    );
    return { ...answer, truncated: answer.truncated ?? [], errors: answer.errors ?? [] };
  }

  /**
   * Runs a model on inputs as they come, each as `predict` would, over one request: the next is taken from `inputs`
   * when the server has room for it, and answers come while more is sent. An input that fails is answered with its
   * `error`, and the others go on. Whoever stops reading gives the rest up. For Node.js: browsers send no bodies
   * that go on, or over HTTP/2 alone.
   */
  async *predictStream<const Inputs extends PredictInputs, const Partial extends boolean = false>(
    model: string,
    inputs: AsyncIterable<Inputs> | Iterable<Inputs>,
    options: PredictStreamOptions<Partial> = {},
  ): AsyncGenerator<StreamedOf<Inputs, Partial>, void, undefined> {
    const { version, order, signal } = options;
    const url = `${this.#base}/v1/models/${modelPath(model, version)}/predict`;
    const headers = this.#headers(options);
    headers.set('content-type', LINES_TYPE);
    const body = new LinesBody(inputs, options);
    const call = { url: order === undefined ? url : `${url}?order=${order}`, headers, body: body.stream };
    try {
      for await (const line of this.#transport.exchange(call, signal)) {
        yield readLine(line) as StreamedOf<Inputs, Partial>;
      }
    } catch (error) {
      // What the inputs have failed with says more than the connection that broke by it.
      throw body.failure ? body.failure.error : error;
    } finally {
      body.end();
    }
  }

  /** The embedding of one text: as many numbers as the model has dimensions, FP32 as the model made them. */
  async embed(model: string, input: string, options?: EmbedOptions): Promise<Float32Array>;
  /** The embeddings of a list of texts, in their order. */
  async embed(model: string, inputs: readonly string[], options?: EmbedOptions): Promise<Float32Array[]>;
  async embed(
    model: string,
    input: string | readonly string[],
    options: EmbedOptions = {},
  ): Promise<Float32Array | Float32Array[]> {
    const { dimensions, waitMs } = options;
    const body = JSON.stringify({ model, input, dimensions, encoding_format: 'base64' });
    const answer = await this.#post('/v1/embeddings', body, JSON_TYPE, options, {
      ...(waitMs === undefined ? {} : { prefer: `wait=${Math.ceil(waitMs / 1000)}` }),
    });
    const embeddings = embeddingsOf(jsonOf(answer), typeof input === 'string' ? 1 : input.length);
    return typeof input === 'string' ? (embeddings[0] as Float32Array) : embeddings;
  }

  /**
   * Runs a model on tensors, in binary both ways (Open Inference Protocol, version 2): exact, and without JSON
   * for their elements. The first axis of each is the items.
   * @param tensors the inputs by name, made by `tensor`.
   */
  async infer(
    model: string,
    tensors: Readonly<Record<string, Tensor>>,
    options: InferOptions = {},
  ): Promise<InferAnswer> {
    const { version, outputs, id, waitMs } = options;
    const parameters = {
      ...options.parameters,
      // Microseconds, as the protocol counts.
      ...(waitMs === undefined ? {} : { timeout: Math.ceil(waitMs * 1000) }),
    };
    const { body, headerLength } = encodeInfer(tensors, { id, outputs, parameters });
    const path = `/v2/models/${modelPath(model, version)}/infer`;
    const answer = await this.#post(path, body, 'application/octet-stream', options, {
      'inference-header-content-length': String(headerLength),
    });
    const decoded = decodeInfer(answer.body, answer.headers.get('inference-header-content-length'));
    const { model_name, model_version, id: echoed, parameters: said } = decoded.header;
    return new InferAnswer(model_name, model_version, echoed, said ?? {}, decoded.outputs);
  }

  /** The models that the gateway knows. */
  async models(options: CallOptions = {}): Promise<ModelInfo[]> {
    return jsonOf<{ data: ModelInfo[] }>(await this.#get('/v1/models', options)).data;
  }

  /** One model: its signature, limits and readiness. */
  async model(model: string, options: CallOptions = {}): Promise<ModelInfo> {
    return jsonOf(await this.#get(`/v1/models/${modelPath(model)}`, options));
  }

  /** Whether the gateway serves every model it should, asked once; false also where it can't be reached. */
  async ready(options: Omit<CallOptions, 'retries'> = {}): Promise<boolean> {
    try {
      const call = { answers: [503] };
      return (await this.#get('/v2/health/ready', { ...options, retries: 0 }, call)).status === 200;
    } catch (error) {
      if (error instanceof MillraceConnectionError) return false;
      throw error;
    }
  }

  #get(path: string, options: CallOptions, call: Pick<Call, 'answers'> = {}): Promise<HttpAnswer> {
    const headers = this.#headers(options);
    return this.#transport.send(
      { ...call, method: 'GET', url: this.#base + path, headers },
      this.#limits(options),
    );
  }

  #post(
    path: string,
    body: Call['body'],
    contentType: string,
    options: RunOptions,
    more: Record<string, string> = {},
  ): Promise<HttpAnswer> {
    const limits = this.#limits(options);
    const headers = this.#headers(options);
    headers.set('content-type', contentType);
    for (const [header, value] of Object.entries(more)) headers.set(header, value);
    const { idempotencyKeys = true } = this.#options;
    const key = options.idempotencyKey ?? (idempotencyKeys && limits.retries > 0 ? newKey() : undefined);
    if (key !== undefined) headers.set('idempotency-key', key);
    return this.#transport.send({ method: 'POST', url: this.#base + path, headers, body }, limits);
  }

  #headers(options: Pick<CallOptions, 'headers'>): Headers {
    const headers = new Headers(options.headers);
    const { apiKey } = this.#options;
    if (apiKey !== undefined) headers.set('authorization', `Bearer ${apiKey}`);
    return headers;
  }

  #limits({ signal, timeoutMs, retries }: CallOptions): CallLimits {
    const limits = {
      signal,
      timeoutMs: timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS,
      retries: retries ?? this.#options.retries ?? RETRIES,
    };
    if (!(limits.timeoutMs >= 1 && limits.timeoutMs <= MAX_TIMER_MS)) {
      throw new RangeError(`timeoutMs must be from 1 to ${MAX_TIMER_MS} ms.`);
    }
    if (!Number.isSafeInteger(limits.retries) || limits.retries < 0) {
      throw new RangeError('retries must be a whole number from 0 up.');
    }
    return limits;
  }
}
