import type { Linear } from '../encoder/weights.js';

/** A weight matrix in INT8: W[k][n] is about values[k][n] x scales[n]. */
export interface Int8Columns {
  /** Row-major [inputs, outputs], -127 to 127. */
  readonly values: Int8Array;
  /** One for each output. */
  readonly scales: Float32Array;
}

/** A table in INT8: T[r][c] is about values[r][c] x scales[r]. */
export interface Int8Rows {
  readonly values: Int8Array;
  readonly scales: Float32Array;
}

const LEVELS = 127;

/** The largest magnitude in each row of a row-major matrix. */
export function rowMaxima(matrix: Float32Array, columns: number): Float32Array {
  const maxima = new Float32Array(matrix.length / columns);
  for (let row = 0; row < maxima.length; row++) {
    let max = 0;
    for (let i = row * columns; i < (row + 1) * columns; i++) max = Math.max(max, Math.abs(matrix[i] ?? 0));
    maxima[row] = max;
  }
  return maxima;
}

/** Quantizes W, its row k multiplied by `rowFactors[k]`, symmetrically with one scale a column. */
export function quantizeColumns({ inputs, outputs, weight }: Linear, rowFactors: Float32Array): Int8Columns {
  const scaled = new Float32Array(weight.length);
  const scales = new Float32Array(outputs);
  for (let row = 0; row < inputs; row++) {
    const factor = rowFactors[row] ?? 1;
    for (let column = 0, i = row * outputs; column < outputs; column++, i++) {
      const value = (weight[i] ?? 0) * factor;
      scaled[i] = value;
      scales[column] = Math.max(scales[column] ?? 0, Math.abs(value));
    }
  }
  const inverse = new Float32Array(outputs);
  for (let column = 0; column < outputs; column++) {
    // A column of zeros keeps a scale that can be divided by.
    scales[column] = (scales[column] || 1) / LEVELS;
    inverse[column] = 1 / (scales[column] ?? 1);
  }
  const values = new Int8Array(weight.length);
  for (let row = 0; row < inputs; row++) {
    for (let column = 0, i = row * outputs; column < outputs; column++, i++) {
      values[i] = Math.round((scaled[i] ?? 0) * (inverse[column] ?? 0));
    }
  }
  return { values, scales };
}

/** Quantizes a table symmetrically with one scale a row. */
export function quantizeRows(table: Float32Array, columns: number): Int8Rows {
  const scales = rowMaxima(table, columns).map((max) => (max || 1) / LEVELS);
  const values = new Int8Array(table.length);
  scales.forEach((scale, row) => {
    const inverse = 1 / scale;
    for (let i = row * columns; i < (row + 1) * columns; i++)
      values[i] = Math.round((table[i] ?? 0) * inverse);
  });
  return { values, scales };
}
