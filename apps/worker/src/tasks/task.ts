import type { ErrorCode, Manifest, ModelDescription, Operation, Tensor } from '@millrace/shared';
import type { WireTensor } from '../session/messages.js';

/** One item as it came: its bytes of each input tensor, and that tensor's datatype and inner shape. */
export interface RawItem {
  /** Absent: the model's own run. */
  operation?: Operation | undefined;
  /** Those of its request. */
  parameters?: Readonly<Record<string, string | number | boolean>> | undefined;
  inputs: ReadonlyMap<string, RawInput>;
}

export interface RawInput {
  datatype: Tensor['datatype'];
  /** Shape without the item axis. */
  shape: readonly number[];
  data: Uint8Array;
}

/** An item ready to run with others. */
export interface Prepared {
  /** What its cost grows with: tokens of a text, elements of tensors. */
  size: number;
  /** Items run together only if their keys are equal. */
  shapeKey: string;
  truncated: boolean;
  /** Tokens of a text, special ones included. */
  tokens?: number;
  /** The task's own form of the input. */
  value: unknown;
}

export interface ItemFault {
  code: ErrorCode;
  message: string;
}

/** An item that was answered when it was prepared: it needs no run of the model. */
export interface Answered {
  outputs: ItemOutput[];
}

/** An item's share of one output. */
export interface ItemOutput {
  name: string;
  datatype: Tensor['datatype'];
  shape: readonly number[];
  data: Uint8Array;
}

/**
 * What differs between kinds of models. A task checks and prepares single items (a fault is that item's
 * alone), lays a group out as the model's tensors, and cuts the model's outputs into items again.
 */
export interface Task {
  readonly description: ModelDescription;
  /** Loads what preparing needs. */
  warm(): Promise<void>;
  /** One result per item, in order. */
  prepare(items: readonly RawItem[]): Promise<(Prepared | Answered | ItemFault)[]>;
  /** The model's inputs for a group of one shapeKey, items on the first axis; buffers of their own. */
  assemble(group: readonly Prepared[]): WireTensor[];
  /** The outputs of a run of `count` items, cut into items. @throws Error when the first axis isn't `count`. */
  split(outputs: readonly WireTensor[], count: number): ItemOutput[][];
  /** Sizes between the smallest and the largest that the model takes, ascending: where to measure it. */
  readonly sampleSizes: readonly number[];
  /** An item of about this size that the model takes, with made-up content. */
  sample(size: number): Prepared;
}

/** The platform's name in metadata: a simulated device is never passed off as a real one. */
export function platformOf({ simulate }: Manifest): string {
  return simulate ? 'onnxruntime_onnx_on_simulated_device' : 'onnxruntime_onnx';
}

export function isFault(result: Prepared | Answered | ItemFault): result is ItemFault {
  return 'code' in result;
}

export function isAnswered(result: Prepared | Answered | ItemFault): result is Answered {
  return 'outputs' in result;
}
