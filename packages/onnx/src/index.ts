export { buildEncoder, type EncoderSource } from './encoder/build.js';
export { type Pooling, UnsupportedModelError } from './encoder/config.js';
export { GraphBuilder } from './graph/builder.js';
export { buildIdentity } from './identity/build.js';
export { readModel, toBigInt, writeModel } from './proto/codec.js';
export { DataType, type ModelProto } from './proto/types.js';
export { readSafetensors, type SafeTensor, SafetensorsError } from './safetensors/read.js';
