import type { ModelDescription } from '@millrace/shared';
import type { LoadSpec } from '../load/messages.js';

/** The no-op model as its worker describes it, a small request to it, and that request's answer. */
export const IDENTITY: ModelDescription = {
  name: 'identity',
  version: '1',
  task: 'tensor',
  platform: 'onnxruntime_onnx',
  inputs: [{ name: 'fp32', datatype: 'FP32', shape: [-1, -1], optional: true }],
  outputs: [{ name: 'fp32_out', datatype: 'FP32', shape: [-1, -1] }],
  limits: { maxRequestItems: 2048 },
};

/** What the small request holds and its answer gives back. */
export const IDENTITY_VALUES = [0.5, -1.25, 3, 42];
const BODY = JSON.stringify({ inputs: { fp32: IDENTITY_VALUES } });

export const IDENTITY_ANSWER = {
  id: '00000000-0000-4000-8000-000000000000',
  model: IDENTITY.name,
  version: IDENTITY.version,
  outputs: [{ fp32_out: IDENTITY_VALUES }],
  timings: { total: 0 },
};

export const IDENTITY_REQUESTS: Pick<LoadSpec, 'bodies' | 'itemsPerRequest' | 'check'> = {
  bodies: [BODY],
  itemsPerRequest: 1,
  check: { path: ['outputs', 0, 'fp32_out'], expected: { 0: [IDENTITY_VALUES] }, tolerance: 0 },
};
