import { expect } from 'chai';
import { GrpcClient, type ServiceError, status } from '#gateway/test-support/grpc-client.js';
import type { Answered, Door } from '../door.js';
import { rowsOf } from '../http-door.js';
import { bytesElements, floatsOf } from '../raw-tensors.js';

/** The HTTP statuses that stand for gRPC's: as google.rpc.Code says. */
const STATUSES: Readonly<Record<number, number>> = {
  [status.OK]: 200,
  [status.INVALID_ARGUMENT]: 400,
  [status.UNAUTHENTICATED]: 401,
  [status.PERMISSION_DENIED]: 403,
  [status.NOT_FOUND]: 404,
  [status.RESOURCE_EXHAUSTED]: 429,
  [status.CANCELLED]: 499,
  [status.INTERNAL]: 500,
  [status.UNIMPLEMENTED]: 501,
  [status.UNAVAILABLE]: 503,
  [status.DEADLINE_EXCEEDED]: 504,
};

/** ModelInfer of the Open Inference Protocol's service, tensors raw both ways. */
export const grpcDoor: Door = {
  name: 'gRPC',
  lacks: {},
  // It has fewer statuses than HTTP.
  statuses: { body_too_large: 429, idempotency_key_reused: 400 },
  otherClass: [],
  fieldOf: (index) => `[${index}]`,
  noText: Buffer.from([0xff, 0xfe]),
  async ask(to, texts, { headers, id, waitMs, signal } = {}) {
    const client = new GrpcClient(to.grpc, headers);
    const call = {
      model_name: to.model,
      ...(id === undefined ? {} : { id }),
      inputs: [{ name: 'text', datatype: 'BYTES', shape: [texts.length] }],
      raw_input_contents: [bytesElements(texts)],
    };
    try {
      const { body, trailers } = await client.infer(call, {
        ...(waitMs === undefined ? {} : { deadline: Date.now() + waitMs }),
        ...(signal ? { cancelled: signal } : {}),
      });
      const vectors = body.outputs.flatMap(({ shape }, i) =>
        rowsOf(floatsOf(body.raw_output_contents[i] ?? Buffer.alloc(0)), shape),
      );
      const header = (name: string) => trailers.get(name)[0]?.toString();
      return { status: 200, header, vectors, message: '', id: body.id, raw: undefined };
    } catch (error) {
      return refused(error as ServiceError);
    } finally {
      client.close();
    }
  },
  /** A status of the specification's, and a sentence. */
  requireRefusalForm({ raw }) {
    const { code, details } = raw as ServiceError;
    expect(STATUSES).to.have.property(String(code));
    expect(details).to.be.a('string').with.length.above(0);
  },
};

function refused(error: ServiceError): Answered {
  if (error.code === undefined) throw error;
  return {
    status: STATUSES[error.code] ?? 0,
    header: (name) => error.metadata.get(name)[0]?.toString(),
    vectors: [],
    message: error.details,
    id: undefined,
    raw: error,
  };
}
