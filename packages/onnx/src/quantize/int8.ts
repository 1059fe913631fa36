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

/**
 * Quantizes W, its row k multiplied by `rowFactors[k]`, symmetrically with one scale a column.
 *
 * x86 CPUs without VNNI add the products of two neighbouring rows in 16 bits (VPMADDUBSW), where 255 x (127 + 127)
 * would saturate. So a column's range is its largest sum of two neighbours of one sign: 255 x 128 fits, every CPU
 * gives the same integers, and the cost is 0.0001 of cosine.
 */
export function quantizeColumns({ inputs, outputs, weight }: Linear, rowFactors: Float32Array): Int8Columns {
  const scaled = new Float32Array(weight.length);
  for (let row = 0, i = 0; row < inputs; row++) {
    const factor = rowFactors[row] ?? 1;
    for (let column = 0; column < outputs; column++, i++) scaled[i] = (weight[i] ?? 0) * factor;
  }
  const scales = columnRanges(scaled, inputs, outputs).map((range) => (range || 1) / LEVELS);
  const inverse = scales.map((scale) => 1 / scale);
  const values = new Int8Array(weight.length);
  for (let row = 0, i = 0; row < inputs; row++) {
    for (let column = 0; column < outputs; column++, i++) {
      values[i] = Math.round((scaled[i] ?? 0) * (inverse[column] ?? 0));
    }
  }
  return { values, scales };
}

function columnRanges(matrix: Float32Array, rows: number, columns: number): Float32Array {
  const ranges = new Float32Array(columns);
  for (let row = 0; row < rows; row += 2) {
    for (let column = 0, i = row * columns; column < columns; column++, i++) {
      const a = matrix[i] ?? 0;
      const b = row + 1 < rows ? (matrix[i + columns] ?? 0) : 0;
      const range = a * b > 0 ? Math.abs(a + b) : Math.max(Math.abs(a), Math.abs(b));
      if (range > (ranges[column] ?? 0)) ranges[column] = range;
    }
  }
  return ranges;
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
