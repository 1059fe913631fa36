import { fileURLToPath } from 'node:url';
import {
  type CallOptions,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

export { type ServiceError, status } from '@grpc/grpc-js';

const PROTO = new URL('../../proto/', import.meta.url);

export interface Parameter {
  bool_param?: boolean;
  int64_param?: number | string;
  string_param?: string;
  double_param?: number;
}

export interface InferTensor {
  name: string;
  datatype: string;
  shape: (number | string)[];
  contents?: Record<string, unknown[]>;
  parameters?: Record<string, Parameter>;
}

/** A ModelInferRequest as a client writes it. */
export interface InferCall {
  model_name: string;
  model_version?: string;
  id?: string;
  parameters?: Record<string, Parameter>;
  inputs?: InferTensor[];
  outputs?: { name: string; parameters?: Record<string, Parameter> }[];
  raw_input_contents?: Uint8Array[];
}

export interface InferAnswer {
  model_name: string;
  model_version: string;
  id: string;
  parameters: Record<string, Parameter>;
  outputs: { name: string; datatype: string; shape: number[] }[];
  raw_output_contents: Buffer[];
}

export interface StreamAnswer {
  error_message: string;
  infer_response: InferAnswer | null;
}

/** The service of a file in proto/, as the library's own loader reads it. */
function serviceOf(file: string, name: string): ServiceDefinition {
  const path = fileURLToPath(new URL(file, PROTO));
  return loadSync(path, { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: false })[
    name
  ] as ServiceDefinition;
}

export const INFERENCE = serviceOf('grpc_service.proto', 'inference.GRPCInferenceService');

export const HEALTH = serviceOf('health.proto', 'grpc.health.v1.Health');

/** Answer of a unary call and the metadata behind it, or the status that it failed with. */
export interface UnaryAnswer<Body> {
  body: Body;
  trailers: Metadata;
}

/** A client by the library that Node.js clients use. */
export class GrpcClient {
  readonly client: Client;
  readonly metadata: Metadata;

  constructor(address: string, headers: Record<string, string> = {}, options: object = {}) {
    this.client = new Client(address, credentials.createInsecure(), options);
    this.metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) this.metadata.set(name, value);
  }

  /** Rejects with the library's ServiceError. */
  call<Body = Record<string, unknown>>(
    method: string,
    request: object,
    options: CallOptions & { service?: ServiceDefinition; cancelled?: AbortSignal } = {},
  ): Promise<UnaryAnswer<Body>> {
    const { service = INFERENCE, cancelled, ...rest } = options;
    const definition = definitionOf(service, method);
    return new Promise((resolve, reject) => {
      let body: Body | undefined;
      const call = this.client.makeUnaryRequest(
        definition.path,
        definition.requestSerialize,
        definition.responseDeserialize,
        request,
        this.metadata,
        rest,
        (error: ServiceError | null, value: unknown) => {
          if (error) reject(error);
          else body = value as Body;
        },
      );
      call.on('status', ({ metadata }) => {
        if (body !== undefined) resolve({ body, trailers: metadata });
      });
      cancelled?.addEventListener('abort', () => call.cancel());
    });
  }

  infer(
    request: InferCall,
    options: CallOptions & { cancelled?: AbortSignal } = {},
  ): Promise<UnaryAnswer<InferAnswer>> {
    return this.call<InferAnswer>('ModelInfer', request, options);
  }

  /** The status that a call fails with. */
  async refusal(answer: Promise<unknown>): Promise<ServiceError> {
    try {
      await answer;
    } catch (error) {
      return error as ServiceError;
    }
    throw new Error('It was answered.');
  }

  /** Bytes as they are in place of a message. */
  raw(path: string, message: Buffer, options: CallOptions = {}): Promise<Buffer> {
    const asIs = (bytes: Buffer): Buffer => bytes;
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest(path, asIs, asIs, message, this.metadata, options, (error, value) => {
        if (error) reject(error);
        else resolve(value as Buffer);
      });
    });
  }

  /** A call that its server answers many times. */
  watch(service: ServiceDefinition, method: string, request: object): ClientReadableStream<unknown> {
    const { path, requestSerialize, responseDeserialize } = definitionOf(service, method);
    const call = this.client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      this.metadata,
    );
    return call.on('error', () => undefined);
  }

  stream(options: CallOptions = {}): InferStream {
    const { path, requestSerialize, responseDeserialize } = definitionOf(INFERENCE, 'ModelStreamInfer');
    return new InferStream(
      this.client.makeBidiStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        this.metadata,
        options,
      ) as never,
    );
  }

  close(): void {
    this.client.close();
  }
}

/** A ModelStreamInfer call; its answers are kept as they come. */
export class InferStream {
  readonly answers: StreamAnswer[] = [];
  /** The status code and message that it ended with. */
  readonly ended: Promise<{ code: number; details: string }>;
  readonly #call: ClientDuplexStream<InferCall, StreamAnswer>;

  constructor(call: ClientDuplexStream<InferCall, StreamAnswer>) {
    this.#call = call;
    this.ended = new Promise((resolve) => {
      call.on('status', ({ code, details }) => resolve({ code, details }));
    });
    call.on('error', () => undefined);
    call.on('data', (answer: StreamAnswer) => this.answers.push(answer));
  }

  send(request: InferCall): void {
    this.#call.write(request);
  }

  end(): void {
    this.#call.end();
  }

  cancel(): void {
    this.#call.cancel();
  }
}

function definitionOf(service: ServiceDefinition, method: string) {
  const definition = service[method];
  if (!definition) throw new Error(`There is no method ${method}.`);
  return definition;
}

/** A ModelInferRequest of texts. */
export function textCall(model: string, texts: readonly string[], rest: Partial<InferCall> = {}): InferCall {
  return {
    model_name: model,
    inputs: [{ name: 'text', datatype: 'BYTES', shape: [texts.length] }],
    raw_input_contents: [rawTexts(texts)],
    ...rest,
  };
}

/** BYTES elements as they travel raw. */
export function rawTexts(texts: readonly string[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(text));
      return [length, Buffer.from(text)];
    }),
  );
}
