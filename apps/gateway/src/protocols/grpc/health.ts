import { MillraceError } from '@millrace/shared';
import type { ReadinessCheck } from '../../http/health.js';
import type { Call, Method } from './call.js';
import { codecsOf } from './definitions.js';
import { operationsErrors } from './status.js';
import { plain } from './unary.js';

/** How often a watched status is looked at, in ms. */
const LOOK_MS = 500;
/** What a client may ask for: the gateway, or the service, which is served when the gateway is ready. */
const KNOWN = ['', 'inference.GRPCInferenceService'];

const OPEN = { door: operationsErrors };

/** The methods of `grpc.health.v1.Health` by their paths. */
export function healthService(readiness: ReadinessCheck): [string, Method][] {
  const codec = codecsOf('health.proto', 'grpc.health.v1.Health');
  const statusOf = (service: unknown): string => {
    if (!KNOWN.includes(String(service ?? ''))) return 'SERVICE_UNKNOWN';
    return readiness().ready ? 'SERVING' : 'NOT_SERVING';
  };
  const watch = codec('Watch');
  return [
    plain(codec('Check'), OPEN, ({ service }) => {
      const status = statusOf(service);
      if (status !== 'SERVICE_UNKNOWN') return { status };
      throw new MillraceError('not_found', 'There is no such service here.', { field: 'service' });
    }),
    [watch.path, { ...OPEN, streams: true, open: (call) => watching(call, watch, statusOf) }],
  ];
}

function watching(
  call: Call,
  codec: ReturnType<ReturnType<typeof codecsOf>>,
  statusOf: (service: unknown) => string,
) {
  let timer: NodeJS.Timeout | undefined;
  let told: string | undefined;
  return {
    message(message: Buffer): void {
      const { service } = codec.decode(message);
      const look = (): void => {
        const status = statusOf(service);
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
    over: () => clearInterval(timer),
  };
}
