import { MINILM } from '#test/support/minilm.js';
import type { AnswerCheck } from '../load/messages.js';
import { IDENTITY, IDENTITY_REQUESTS, IDENTITY_VALUES } from './identity.js';
import { binaryInfer, floatTensor, grpcInfer, textTensor } from './infer-forms.js';
import { predictUrl, type Served } from './millrace.js';
import type { SentenceLoad } from './sentence-load.js';
import type { Target } from './sustained.js';

/** A load of each door, by its name. The fragment of a URL tells the loads of one address apart. */
export type DoorLoads = Readonly<Record<string, Target>>;

export const NATIVE = 'native';
export const BINARY = 'open-inference-binary';
export const GRPC = 'grpc';

const inferUrl = ({ url }: Served, model: string): string => `${url}/v2/models/${model}/infer`;
const grpcUrl = ({ grpc }: Served): string => `http://${grpc}/inference.GRPCInferenceService/ModelInfer`;

/** The same sentences for every door, one a request. */
export function sentenceDoors(served: Served, load: SentenceLoad): DoorLoads {
  const { bodies, check, itemsPerRequest } = load.requests();
  const { pids, url } = served;
  const json = (of: (text: string) => object): string[] =>
    load.sentences.map((text) => JSON.stringify(of(text)));
  const rest = (path: AnswerCheck['path']) => ({
    pids,
    itemsPerRequest,
    check: check && { ...check, path },
  });
  const openai = (format: 'float' | 'base64'): Target => ({
    url: `${url}/v1/embeddings#${format}`,
    bodies: json((input) => ({ model: MINILM, input, encoding_format: format })),
    ...rest(['data', 0, 'embedding']),
  });
  return {
    [NATIVE]: { url: predictUrl(served, MINILM), bodies, ...rest(['outputs']) },
    'open-inference-json': {
      url: `${inferUrl(served, MINILM)}#json`,
      bodies: json((text) => ({ inputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: [text] }] })),
      ...rest(['outputs', 0, 'data']),
    },
    [BINARY]: {
      url: `${inferUrl(served, MINILM)}#binary`,
      bodies: load.sentences.map((text) => binaryInfer(textTensor(text))),
      ...rest('floats'),
    },
    [GRPC]: {
      url: grpcUrl(served),
      wire: 'grpc',
      bodies: load.sentences.map((text) => grpcInfer(MINILM, textTensor(text))),
      ...rest('floats'),
    },
    'openai-float': openai('float'),
    'openai-base64': openai('base64'),
    tei: {
      url: `${url}/models/${MINILM}/embed`,
      bodies: json((inputs) => ({ inputs })),
      ...rest([]),
    },
  };
}

/** The same small tensor for every door that takes tensors, to a model that does nothing. */
export function tensorDoors(served: Served): DoorLoads {
  const { bodies, check, itemsPerRequest } = IDENTITY_REQUESTS;
  const tensor = floatTensor('fp32', IDENTITY_VALUES);
  const { name, datatype, shape } = tensor;
  const rest = (path: AnswerCheck['path']) => ({
    pids: served.pids,
    itemsPerRequest,
    check: check && { ...check, path },
  });
  return {
    [NATIVE]: { url: predictUrl(served, IDENTITY.name), bodies, ...rest(check?.path ?? []) },
    'open-inference-json': {
      url: `${inferUrl(served, IDENTITY.name)}#json`,
      bodies: [JSON.stringify({ inputs: [{ name, datatype, shape, data: IDENTITY_VALUES }] })],
      ...rest(['outputs', 0, 'data']),
    },
    [BINARY]: {
      url: `${inferUrl(served, IDENTITY.name)}#binary`,
      bodies: [binaryInfer(tensor)],
      ...rest('floats'),
    },
    [GRPC]: {
      url: `${grpcUrl(served)}#tensor`,
      wire: 'grpc',
      bodies: [grpcInfer(IDENTITY.name, tensor)],
      ...rest('floats'),
    },
  };
}
