import type { ItemError } from './errors.js';
import { MillraceProtocolError } from './errors.js';
import type { Parameters } from './options.js';
import type { Datatype, Tensor, TensorOf } from './tensors.js';

/** A tensor in JSON: a bare value, or nested lists of them. */
export type JsonTensor = number | boolean | string | readonly JsonTensor[];

/** One item of a model of plain tensors: its inputs by name, without the item axis. */
export type TensorItem = Readonly<Record<string, JsonTensor>>;

/** What `predict` takes: one item or a list. */
export type PredictInputs = string | readonly string[] | TensorItem | readonly TensorItem[];

/** What a model makes of one item: an embedding of a text, or outputs by name. */
export type PredictedOutput<Inputs extends PredictInputs> = Inputs extends string | readonly string[]
  ? number[]
  : Record<string, JsonTensor>;

/** The answer of `predict`. */
export interface Prediction<Output> {
  /** The server's id of the request. */
  id: string;
  model: string;
  version: string;
  /** One for each input, in order; `null` where a partial answer lacks it. */
  outputs: Output[];
  /** Indices of the texts that were longer than the model takes, and were cut. */
  truncated: number[];
  /** The items that failed, in a partial answer. */
  errors: ItemError[];
  /** What each stage of the request took, in ms; `total` is all of it in the server. */
  timings: Record<string, number>;
}

/** The answer of `infer`. */
export class InferAnswer {
  /** @param outputs the model's outputs by name. */
  constructor(
    readonly model: string,
    readonly version: string | undefined,
    /** The caller's own id, echoed. */
    readonly id: string | undefined,
    readonly parameters: Readonly<Parameters>,
    readonly outputs: Readonly<Record<string, Tensor>>,
  ) {}

  /**
   * An output of a known datatype, as in `answer.output('embedding', 'FP32').data`.
   * @throws MillraceProtocolError when the answer lacks it, or has it in another datatype.
   */
  output<D extends Datatype>(name: string, datatype: D): TensorOf<D> {
    const found = Object.hasOwn(this.outputs, name) ? this.outputs[name] : undefined;
    if (found?.datatype === datatype) return found as TensorOf<D>;
    const fault = found ? `is ${found.datatype}, not ${datatype}` : 'is not among the outputs';
    throw new MillraceProtocolError(`${name} ${fault} of ${this.model}.`);
  }
}

/** Name, datatype and shape of an input or output; -1 is a dimension of any size, the first are the items. */
export interface TensorSpec {
  name: string;
  datatype: Datatype;
  shape: number[];
  /** The input may be left out. */
  optional?: boolean;
}

/** A model that is served. */
export interface ModelInfo {
  /** Its name. */
  id: string;
  /** The latest version that is served. */
  version: string;
  /** All versions that are. */
  versions: string[];
  /** Seconds since 1970 when the gateway first knew of it. */
  created: number;
  /** `text-embedding` takes texts, `tensor` plain tensors. */
  task: string;
  inputs: TensorSpec[];
  outputs: TensorSpec[];
  /** What a request may ask of it. */
  limits: {
    /** Most items of one request. */
    maxRequestItems: number;
    /** Most tokens of one text; what is longer is cut or refused. */
    maxTokens?: number;
  };
  /** Whether a worker serves it now. */
  ready: boolean;
}
