export interface MatmulRecipe {
  /** SmoothQuant's exponent. */
  readonly alpha: number;
  /** Share of the calibrated range that is represented; beyond it values saturate. */
  readonly clip: number;
  /** Of the smoothed activations: x is about (q - zeroPoint) x scale, q in 0 to 255. */
  readonly scale: number;
  readonly zeroPoint: number;
  /** Largest magnitude of each input channel, as `encodeMaxima` stores it. */
  readonly channelMaxima: Uint8Array;
}

/** The outcome of the quantizer's search for one set of weights: all that is needed to quantize them again. */
export interface Recipe {
  /** Of the safetensors file it was searched for. */
  readonly weightsSha256: string;
  readonly matmuls: Readonly<Record<string, MatmulRecipe>>;
}
