import { expect } from 'chai';
import { JsonWriter } from './json-writer.js';

const written = (value: number, digits: number): string =>
  new JsonWriter().rounded(value, digits).end().toString();

describe('JsonWriter', () => {
  it('cuts floats to significant digits, without trailing zeros', () => {
    expect(written(0.123456789, 7)).to.equal('0.1234568');
    expect(written(-0.000123456789, 7)).to.equal('-0.0001234568');
    expect(written(0.5, 7)).to.equal('0.5');
    expect(written(0.1, 9)).to.equal('0.1');
    expect(written(0, 7)).to.equal('0');
    expect(written(1, 7)).to.equal('1');
    expect(written(-12345.678901, 7)).to.equal('-12345.68');
  });

  it('keeps the sign of zero', () => {
    expect(new JsonWriter().number(-0).end().toString()).to.equal('-0');
    expect(new JsonWriter().number(0).end().toString()).to.equal('0');
  });

  it('rounds up over a power of ten', () => {
    expect(written(0.09999999999, 7)).to.equal('0.1');
    expect(written(0.99999999, 7)).to.equal('1');
    expect(written(-0.99999999, 7)).to.equal('-1');
  });

  it('writes what is tiny or huge with an exponent, and null for what JSON cannot say', () => {
    expect(JSON.parse(written(1.23456789e-12, 3))).to.equal(1.23e-12);
    expect(JSON.parse(written(1.23456789e30, 3))).to.equal(1.23e30);
    expect(written(Number.NaN, 7)).to.equal('null');
    expect(written(Number.NEGATIVE_INFINITY, 7)).to.equal('null');
  });

  it('agrees with the engine on any float, and with 9 digits gives the same float32', () => {
    // A fixed generator, so that a failure can be seen again.
    let seed = 1;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    for (let i = 0; i < 50_000; i++) {
      const value = Math.fround((random() - 0.5) * 10 ** Math.floor(random() * 20 - 12));
      const seven = Number(written(value, 7));
      expect(Math.abs(seven - value)).to.be.at.most(Math.abs(value) * 5.01e-7);
      expect(Math.fround(Number(written(value, 9)))).to.equal(value);
    }
  });

  it('writes a list as its numbers one by one, whatever is among them and however long it is', () => {
    const values = Float32Array.from({ length: 5000 }, (_, i) =>
      i % 7 === 0
        ? ([0, -0, 1, 1e-12, -3e30, Number.NaN, 0.99999999][(i / 7) % 7] ?? 0)
        : Math.sin(i) / (1 + (i % 5) ** 9),
    );
    const list = new JsonWriter().roundedList(values, 7).end().toString();
    expect(list.split(',')).to.deep.equal(Array.from(values, (value) => written(value, 7)));
    expect(new JsonWriter().raw('[').roundedList(new Float32Array(), 7).raw(']').end()).to.equal('[]');
  });

  it('cuts to any number of digits', () => {
    for (let digits = 1; digits <= 9; digits++) {
      expect(Number(written(1 / 3, digits))).to.equal(Number((1 / 3).toPrecision(digits)));
      expect(Number(written(-2 / 3000, digits))).to.equal(Number((-2 / 3000).toPrecision(digits)));
    }
  });

  it('grows, and keeps text beyond ASCII', () => {
    const writer = new JsonWriter();
    for (let i = 0; i < 1000; i++) writer.string('é"\u0000');
    expect(writer.end().toString()).to.equal(JSON.stringify('é"\u0000').repeat(1000));
  });

  it('writes bytes as base64, wherever in their buffer they lie and however many', () => {
    const bytes = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 7) % 256);
    for (const [from, to] of [
      [0, 0],
      [1, 2],
      [3, 5],
      [5, 8],
      [1, 200_000],
    ] as const) {
      const written = new JsonWriter().raw('"').base64(bytes.subarray(from, to)).raw('"').end();
      const text = JSON.parse(String(written)) as string;
      expect(text).to.match(/^[A-Za-z0-9+/]*={0,2}$/);
      expect(Buffer.from(text, 'base64').equals(bytes.subarray(from, to))).to.equal(true);
    }
  });
});
