import type { Datatype, SessionOptions, SimulatedDevice, TensorSpec } from '@millrace/shared';

/**
 * What passes between a session client and its thread. Buffers are moved, not copied: a tensor that was
 * sent can't be read by its sender any more.
 */
export interface WireTensor {
  name: string;
  datatype: Datatype;
  shape: number[];
  /** Row-major little-endian bytes in an ArrayBuffer of their own. */
  data: Uint8Array<ArrayBuffer>;
}

/** The thread's workerData. */
export interface SessionThreadOptions {
  modelFile: string;
  device: 'cpu' | 'cuda';
  session: SessionOptions;
  simulate?: SimulatedDevice | undefined;
  /** One int32: the id of a run that is not to be started if that has not happened yet. */
  skip?: SharedArrayBuffer;
  /** Writes onnxruntime's own profile to files whose paths begin with this, when the session is released. */
  profilePrefix?: string;
}

/** What the ONNX file itself takes and gives; -1 is a dimension that it leaves open. */
export interface Signature {
  inputs: TensorSpec[];
  outputs: TensorSpec[];
}

/** `startBy`: by the clock of `monotonicMs()`; a run whose turn comes later is not started. */
export type ToSession =
  | { type: 'run'; id: number; inputs: WireTensor[]; startBy?: number | undefined }
  | { type: 'release' };

export type FromSession =
  | { type: 'loaded'; device: 'cpu' | 'cuda'; warning?: string; signature: Signature }
  | { type: 'load-failed'; message: string }
  /** `runMs`: time inside onnxruntime. */
  | { type: 'ran'; id: number; outputs: WireTensor[]; runMs: number }
  | { type: 'run-failed'; id: number; message: string }
  | { type: 'not-run'; id: number };
