import { MillraceError } from '@millrace/shared';
import type { ReadinessCheck } from '../../http/health.js';
import type { OpenStreams } from '../open-streams.js';
import type { Call, CallHandler, Method } from './call.js';
import { type Codec, codecsOf, decodeAsked } from './definitions.js';
import { operationsErrors } from './status.js';
import { plain } from './unary.js';

/** How often a watched status is looked at, in ms. */
const LOOK_MS = 500;
/** What a client may ask for: the gateway, or the service, which is served when the gateway is ready. */
const KNOWN = ['', 'inference.GRPCInferenceService'];

const OPEN = { door: operationsErrors };

/** The methods of `grpc.health.v1.Health` by their paths. */
export function healthService(readiness: ReadinessCheck, streams: OpenStreams): [string, Method][] {
  const codec = codecsOf('health.proto', 'grpc.health.v1.Health');
  const statusOf = (service: string): string => {
    if (!KNOWN.includes(service)) return 'SERVICE_UNKNOWN';
    return readiness().ready ? 'SERVING' : 'NOT_SERVING';
  };
  const watch = codec('Watch');
  return [
    plain(codec('Check'), OPEN, ({ name }) => {
      const status = statusOf(name);
      if (status !== 'SERVICE_UNKNOWN') return { status };
      throw new MillraceError('not_found', 'There is no such service here.', { field: 'service' });
    }),
    [watch.path, { ...OPEN, streams: true, open: (call) => watching(call, watch, statusOf, streams) }],
  ];
}

function watching(
  call: Call,
  codec: Codec,
  statusOf: (service: string) => string,
  streams: OpenStreams,
): CallHandler {
  let timer: NodeJS.Timeout | undefined;
  let told: string | undefined;
  let look = (): void => undefined;
  const stream = {
    drain(): void {
      look();
      call.fail(new MillraceError('shutting_down', undefined, { retryAfterSeconds: 1 }));
    },
    message(message: Buffer): void {
      const { name } = decodeAsked(message);
      look = (): void => {
        const status = statusOf(name);
        if (status === told) return;
        told = status;
        call.send(codec.encode({ status }));
      };
      look();
      timer = setInterval(look, LOOK_MS);
      timer.unref();
    },
    halfClose(): void {
      if (!timer)
        call.fail(new MillraceError('invalid_input', 'The message is missing.', { field: 'message' }));
    },
    over(): void {
      clearInterval(timer);
      streams.delete(stream);
    },
  };
  streams.add(stream);
  return stream;
}
