import type { Activation, Pooling } from '../encoder/config.js';
import { layerNames } from '../encoder/names.js';
import type { Checkpoint } from './checkpoint.js';

type Rows = number[][];

/**
 * The encoder in plain double precision, as its definition reads and without any folding: what the built graph
 * must equal. One text, no padding.
 */
export function forward(
  { parsed: config, values }: Checkpoint,
  tokens: readonly number[],
  pooling: Pooling,
  normalize: boolean,
): number[] {
  const { hidden, heads, family } = config;
  const get = (name: string): Float32Array => {
    const found = values.get(name);
    if (found === undefined) throw new Error(`no ${name}`);
    return found;
  };
  const row = (name: string, index: number): number[] => [
    ...get(name).subarray(index * hidden, (index + 1) * hidden),
  ];
  const linear = (x: Rows, name: string): Rows => {
    const weight = get(`${name}.weight`);
    const bias = get(`${name}.bias`);
    return x.map((input) =>
      Array.from(bias, (b, out) =>
        input.reduce((sum, value, i) => sum + value * (weight[out * input.length + i] ?? 0), b),
      ),
    );
  };
  const norm = (x: Rows, name: string): Rows => {
    const [gamma, beta] = [get(`${name}.weight`), get(`${name}.bias`)];
    return x.map((input) => {
      const mean = input.reduce((a, b) => a + b, 0) / hidden;
      const variance = input.reduce((a, b) => a + (b - mean) ** 2, 0) / hidden;
      const scale = 1 / Math.sqrt(variance + config.layerNormEpsilon);
      return input.map((value, i) => (value - mean) * scale * (gamma[i] ?? 0) + (beta[i] ?? 0));
    });
  };
  const attention = (q: Rows, k: Rows, v: Rows): Rows => {
    const size = hidden / heads;
    const head = (x: number[] | undefined, index: number): number[] =>
      (x ?? []).slice(index * size, (index + 1) * size);
    return q.map((query) =>
      Array.from({ length: heads }, (_, h) => {
        const weights = softmax(k.map((key) => dot(head(query, h), head(key, h)) / Math.sqrt(size)));
        return weights.reduce<number[]>(
          (sum, weight, i) => head(v[i], h).map((value, j) => (sum[j] ?? 0) + weight * value),
          [],
        );
      }).flat(),
    );
  };
  let x = tokens.map((token, i) => {
    const word = row('embeddings.word_embeddings.weight', token);
    const place = row('embeddings.position_embeddings.weight', i + config.positionOffset);
    const type = family === 'distilbert' ? [] : row('embeddings.token_type_embeddings.weight', 0);
    return word.map((value, j) => value + (place[j] ?? 0) + (type[j] ?? 0));
  });
  x = norm(x, 'embeddings.LayerNorm');
  for (let layer = 0; layer < config.layers; layer++) {
    const names = layerNames(family, layer);
    const mixed = attention(linear(x, names.query), linear(x, names.key), linear(x, names.value));
    x = norm(plus(linear(mixed, names.attentionOut), x), names.attentionNorm);
    const active = linear(x, names.up).map((values) => values.map(ACTIVATIONS[config.activation]));
    x = norm(plus(linear(active, names.down), x), names.outputNorm);
  }
  const pooled =
    pooling === 'cls'
      ? (x[0] ?? [])
      : x.reduce(
          (sum, values) => sum.map((s, i) => s + (values[i] ?? 0) / x.length),
          new Array(hidden).fill(0),
        );
  const length = normalize ? Math.sqrt(dot(pooled, pooled)) : 1;
  return pooled.map((value) => value / length);
}

const dot = (a: number[], b: number[]): number => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);

const plus = (a: Rows, b: Rows): Rows =>
  a.map((values, i) => values.map((value, j) => value + (b[i]?.[j] ?? 0)));

function softmax(scores: number[]): number[] {
  const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

const ACTIVATIONS: Record<Activation, (x: number) => number> = {
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  quick_gelu: (x) => x * sigmoid(1.702 * x),
  relu: (x) => Math.max(0, x),
  silu: (x) => x * sigmoid(x),
};

/** By its Taylor series, exact to double precision in the range used here. */
function erf(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; n < 120; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
