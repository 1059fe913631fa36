/** A request that a door has to refuse, and what the answer has to say. */
export interface BadRequest {
  name: string;
  body: unknown;
  headers?: Record<string, string>;
  status: number;
  /** The field that the answer names. */
  field: string;
  code?: string;
  index?: number;
}

/** An infer request of four numbers, changed so. */
export const tensor = (changes: object): object => ({
  inputs: [{ name: 'fp32', shape: [2, 2], datatype: 'FP32', data: [1, 2, 3, 4], ...changes }],
});
