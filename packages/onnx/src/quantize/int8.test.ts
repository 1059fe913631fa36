import { expect } from 'chai';
import { seededRandom } from '../runtime/random.js';
import { quantizeColumns, quantizeRows } from './int8.js';
import { decodeMaxima, encodeMaxima, smoothingFactors } from './smoothing.js';

const random = seededRandom(3);
const uniform = (count: number): Float32Array => Float32Array.from({ length: count }, () => 2 * random() - 1);

const [INPUTS, OUTPUTS] = [33, 20];
const linear = {
  inputs: INPUTS,
  outputs: OUTPUTS,
  weight: uniform(INPUTS * OUTPUTS),
  bias: uniform(OUTPUTS),
};

describe('INT8 weights', () => {
  const factors = Float32Array.from({ length: INPUTS }, () => 0.5 + random());
  const { values, scales } = quantizeColumns(linear, factors);

  it('are within half a step of the smoothed weight', () => {
    values.forEach((value, i) => {
      const scale = scales[i % OUTPUTS] ?? 0;
      const exact = (linear.weight[i] ?? 0) * (factors[Math.floor(i / OUTPUTS)] ?? 0);
      expect(Math.abs(value * scale - exact)).to.be.below(scale * 0.501);
    });
  });

  it('never saturate 16 bits when two neighbours meet the largest activation', () => {
    for (let row = 0; row + 1 < INPUTS; row += 2) {
      for (let column = 0; column < OUTPUTS; column++) {
        const [a = 0, b = 0] = [values[row * OUTPUTS + column], values[(row + 1) * OUTPUTS + column]];
        const [high, low] = [
          255 * (Math.max(a, 0) + Math.max(b, 0)),
          255 * (Math.min(a, 0) + Math.min(b, 0)),
        ];
        expect(high).to.be.at.most(32767);
        expect(low).to.be.at.least(-32768);
      }
    }
  });

  it('use the whole range of each column', () => {
    for (let column = 0; column < OUTPUTS; column++) {
      const largest = Math.max(...values.filter((_, i) => i % OUTPUTS === column).map(Math.abs));
      expect(largest).to.be.within(64, 127);
    }
  });

  it('of a column of zeros are zeros', () => {
    const zeros = quantizeColumns({ ...linear, weight: new Float32Array(INPUTS * OUTPUTS) }, factors);
    expect(zeros.values.every((value) => value === 0)).to.equal(true);
    expect(zeros.scales.every((scale) => scale > 0)).to.equal(true);
  });

  it('of a table have a scale for each row', () => {
    const table = Float32Array.from([0.1, -0.2, 100, 50, 0, 0]);
    const rows = quantizeRows(table, 2);
    expect([...rows.values]).to.deep.equal([64, -127, 127, 64, 0, 0]);
    expect(rows.scales[1]).to.be.closeTo(100 / 127, 1e-6);
  });
});

describe('smoothing', () => {
  it('moves all of the range to the weights at 1, and none of the activations at 0', () => {
    const maxima = Float32Array.from({ length: INPUTS }, (_, i) => i + 1);
    expect([...smoothingFactors(linear, maxima, 1)]).to.deep.equal([...maxima]);
    const weightMaxima = maxima.map((_, row) =>
      Math.max(...linear.weight.subarray(row * OUTPUTS, (row + 1) * OUTPUTS).map(Math.abs)),
    );
    smoothingFactors(linear, maxima, 0).forEach((factor, row) => {
      expect(factor * (weightMaxima[row] ?? 0)).to.be.closeTo(1, 1e-6);
    });
  });

  it('leaves a dead channel alone', () => {
    expect(smoothingFactors(linear, new Float32Array(INPUTS), 0.5).every((factor) => factor === 1)).to.equal(
      true,
    );
  });

  it('keeps maxima in a byte each, within 2.2%', () => {
    const maxima = Float32Array.from([0, 0.004, 0.5, 1, 3.3, 77, 240]);
    const [zero, ...others] = decodeMaxima(encodeMaxima(maxima));
    expect(zero).to.equal(0);
    others.forEach((value, i) => {
      expect(value / (maxima[i + 1] ?? 0)).to.be.within(0.978, 1.022);
    });
    expect([...encodeMaxima(Float32Array.from([1e-9, 1e9]))]).to.deep.equal([1, 255]);
  });
});
