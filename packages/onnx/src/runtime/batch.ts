import ort from 'onnxruntime-node';

/** Token ids of one text, special tokens included. */
export type Tokens = readonly number[];

/** Texts padded at the end with id 0 to one length, as the encoder's inputs. */
export function padBatch(batch: readonly Tokens[], length = longest(batch)): Record<string, ort.Tensor> {
  const ids = new BigInt64Array(batch.length * length);
  const mask = new BigInt64Array(batch.length * length);
  batch.forEach((tokens, row) => {
    tokens.forEach((token, column) => {
      ids[row * length + column] = BigInt(token);
      mask[row * length + column] = 1n;
    });
  });
  const dims = [batch.length, length];
  return {
    input_ids: new ort.Tensor('int64', ids, dims),
    attention_mask: new ort.Tensor('int64', mask, dims),
  };
}

export const longest = (batch: readonly Tokens[]): number =>
  Math.max(...batch.map((tokens) => tokens.length));

/** Texts sorted by length and cut into batches, so that little is padding. */
export function batchesByLength(texts: readonly Tokens[], size: number): Tokens[][] {
  const sorted = [...texts].sort((a, b) => a.length - b.length);
  const batches: Tokens[][] = [];
  for (let i = 0; i < sorted.length; i += size) batches.push(sorted.slice(i, i + size));
  return batches;
}
