import { expect } from 'chai';
import { buildEncoder } from '../encoder/build.js';
import { randomCheckpoint, randomTexts, TINY_BERT } from '../test-support/checkpoint.js';
import { compareEncoders } from './compare.js';
import { cosine, pairwiseCosines, rankCorrelation } from './similarity.js';

describe('a comparison of encoders', () => {
  const build = (seed: number) =>
    buildEncoder({ ...randomCheckpoint(TINY_BERT, '', seed), pooling: 'mean', normalize: true });
  const texts = randomTexts(8);
  const stages = new Set<string>();

  it('finds an encoder equal to itself and unlike another', async () => {
    const reference = build(1);
    const { reference: same, candidate } = await compareEncoders({
      reference,
      candidate: build(2),
      texts,
      maxTokens: 40,
      measureMs: 1,
      onProgress: (stage) => stages.add(stage),
    });
    expect(same.bytes).to.equal(reference.length);
    expect(same.cosineMean).to.be.closeTo(1, 1e-6);
    expect(same.rankCorrelation).to.be.closeTo(1, 1e-9);
    expect(same.mateDifference).to.be.below(1e-6);
    expect(same.itemsPerSecond).to.be.above(0);
    expect(candidate.cosineMean).to.be.below(0.9);
    expect(candidate.cosineLowest).to.be.at.most(candidate.cosineMean);
    expect(candidate.rankCorrelation).to.be.below(0.9);
    expect([...stages]).to.deep.equal([
      'reference',
      'candidate',
      'reference among mates',
      'candidate among mates',
    ]);
  });

  it('needs three texts', async () => {
    const model = build(1);
    const failure = await compareEncoders({
      reference: model,
      candidate: model,
      texts: texts.slice(0, 2),
    }).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(RangeError);
  });
});

describe('similarity', () => {
  it('is the cosine, 0 for a zero vector', () => {
    expect(cosine(Float32Array.of(1, 1), Float32Array.of(2, 0))).to.be.closeTo(Math.SQRT1_2, 1e-12);
    expect(cosine(Float32Array.of(0, 0), Float32Array.of(2, 0))).to.equal(0);
  });

  it('is taken of each pair once', () => {
    const cosines = pairwiseCosines([Float32Array.of(1, 0), Float32Array.of(0, 1), Float32Array.of(-1, 0)]);
    expect([...cosines]).to.deep.equal([0, -1, 0]);
  });

  it('is ranked by order alone', () => {
    expect(rankCorrelation(Float64Array.of(1, 2, 3, 4), Float64Array.of(1, 10, 100, 1000))).to.equal(1);
    expect(rankCorrelation(Float64Array.of(1, 2, 3), Float64Array.of(3, 2, 1))).to.equal(-1);
  });

  it('shares ranks among equals', () => {
    // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: covariance 4.5, variances 4.5 and 5.
    const correlation = rankCorrelation(Float64Array.of(1, 2, 2, 3), Float64Array.of(1, 2, 3, 4));
    expect(correlation).to.be.closeTo(4.5 / Math.sqrt(4.5 * 5), 1e-12);
    expect(rankCorrelation(Float64Array.of(1, 1), Float64Array.of(1, 2))).to.be.NaN;
    expect(() => rankCorrelation(Float64Array.of(1), Float64Array.of(1, 2))).to.throw(RangeError);
  });
});
