export {
  InferAnswer,
  type JsonTensor,
  type ModelInfo,
  type PredictedOutput,
  type PredictInputs,
  type Prediction,
  type TensorItem,
  type TensorSpec,
} from './answers.js';
export { MillraceClient } from './client.js';
export {
  type ItemError,
  MillraceApiError,
  MillraceConnectionError,
  MillraceProtocolError,
  MillraceTimeoutError,
} from './errors.js';
export type {
  CallOptions,
  EmbedOptions,
  InferOptions,
  MillraceClientOptions,
  Parameters,
  PredictOptions,
  PredictStreamOptions,
  RunOptions,
} from './options.js';
export type { StreamedPrediction } from './stream.js';
export { type Datatype, type Tensor, type TensorData, type TensorOf, tensor, textsOf } from './tensors.js';
