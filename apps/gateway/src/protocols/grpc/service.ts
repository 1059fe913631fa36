import { MillraceError, type ModelDescription } from '@millrace/shared';
import type { ReadinessCheck } from '../../http/health.js';
import { modelMetadata, serverMetadata } from '../open-inference/metadata.js';
import { refuseToMove, repositoryIndex } from '../open-inference/repository.js';
import { modelStatistics } from '../open-inference/statistics.js';
import type { OpenStreams } from '../open-streams.js';
import type { Method } from './call.js';
import { type Asked, codecsOf } from './definitions.js';
import { type InferParts, inferMessage, namedOnce } from './infer.js';
import { decodeInferRequest } from './infer-request.js';
import { modelConfig } from './model-config.js';
import { operationsErrors } from './status.js';
import { streamInfer } from './stream-infer.js';
import { plain, unary } from './unary.js';

const SERVICE = 'inference.GRPCInferenceService';
const KEYED = { scope: 'infer' } as const;
const OPEN = { door: operationsErrors };

const MEMORY = 'Tensors travel in messages: a gateway shares no memory with its clients.';
const TRACING = 'Tracing and logging are set when a gateway starts.';

/** Calls of Triton's that are not served, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  SystemSharedMemoryStatus: MEMORY,
  SystemSharedMemoryRegister: MEMORY,
  SystemSharedMemoryUnregister: MEMORY,
  CudaSharedMemoryStatus: MEMORY,
  CudaSharedMemoryRegister: MEMORY,
  CudaSharedMemoryUnregister: MEMORY,
  TraceSetting: TRACING,
  LogSettings: TRACING,
};

/** The methods of `inference.GRPCInferenceService` by their paths. */
export function inferenceService(
  parts: InferParts,
  readiness: ReadinessCheck,
  streams: OpenStreams,
): [string, Method][] {
  const { directory, statistics } = parts;
  const codec = codecsOf('grpc_service.proto', SERVICE);
  const modelOf = ({ name, version }: Asked): ModelDescription => {
    if (!name) throw new MillraceError('invalid_input', 'name must not be empty.', { field: 'name' });
    return directory.resolve(name, version || undefined);
  };
  return [
    plain(codec('ServerLive'), OPEN, () => ({ live: true })),
    plain(codec('ServerReady'), OPEN, () => ({ ready: readiness().ready })),
    plain(codec('ModelReady'), KEYED, (request) => ({ ready: directory.isServed(modelOf(request)) })),
    plain(codec('ServerMetadata'), KEYED, () => serverMetadata()),
    plain(codec('ModelMetadata'), KEYED, (request) => {
      const model = modelOf(request);
      return modelMetadata(model, directory.versions(model.name));
    }),
    plain(codec('ModelConfig'), KEYED, (request) => ({ config: modelConfig(modelOf(request)) })),
    plain(codec('ModelStatistics'), KEYED, ({ name, version }) => {
      // Without a name all models are meant, without a version all versions.
      if (name) directory.resolve(name, version || undefined);
      const asked = directory
        .list()
        .map(({ description }) => description)
        .filter((model) => (!name || model.name === name) && (!version || model.version === version))
        .map((model) => ({
          name: model.name,
          version: model.version,
          statistics: statistics.read(model.name, model.version),
        }));
      return modelStatistics(asked);
    }),
    plain(codec('RepositoryIndex'), KEYED, ({ ready }) => ({
      models: repositoryIndex(directory, ready),
    })),
    [
      codec('ModelInfer').path,
      unary(KEYED, (call, message) =>
        inferMessage(parts, call, call.context, decodeInferRequest(message), namedOnce(call, message)),
      ),
    ],
    [codec('ModelStreamInfer').path, streamInfer(parts, streams)],
    ...['RepositoryModelLoad', 'RepositoryModelUnload'].map((name) => refused(name, refuseToMove)),
    ...Object.entries(REFUSED).map(([name, why]) =>
      refused(name, () => {
        throw new MillraceError('unsupported', why);
      }),
    ),
  ];
}

function refused(name: string, refuse: () => never): [string, Method] {
  return [`/${SERVICE}/${name}`, unary(KEYED, refuse)];
}
