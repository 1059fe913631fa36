import { expect } from 'chai';
import { compareEncoders } from './compare/compare.js';
import { cosine } from './compare/similarity.js';
import { buildEncoder } from './encoder/build.js';
import { quantizeEncoder } from './quantize/encoder.js';
import { type DefaultModel, defaultModel } from './test-support/default-model.js';
import { embedWith } from './test-support/embed.js';

/** The published model's similarities of the first sentence to the others, computed independently. */
const SENTENCES = [
  'That is a happy person',
  'That is a happy dog',
  'That is a very happy person',
  'Today is a sunny day',
];
const RIGHT = [0.6946, 0.9429, 0.2569];

describe('the default model', function () {
  this.timeout(120_000);
  let model: DefaultModel;
  let float: Uint8Array;
  let int8: Uint8Array;

  before(() => {
    model = defaultModel();
    float = buildEncoder(model.source);
    int8 = quantizeEncoder(model.source, model.recipe);
  });

  async function expectSimilarities(onnx: Uint8Array, tolerance: number): Promise<void> {
    const [first, ...others] = await embedWith(onnx, model.tokens(SENTENCES));
    others.forEach((other, i) => {
      expect(cosine(first ?? other, other)).to.be.closeTo(RIGHT[i] ?? Number.NaN, tolerance);
    });
  }

  it('has its texts cut to what fits, the closing token kept', () => {
    const [short, long] = model.tokens(['a happy person', 'word '.repeat(400)]);
    expect(short).to.deep.equal([101, 1037, 3407, 2711, 102]);
    expect(long).to.have.length(256);
    expect([long?.[0], long?.at(-2), long?.at(-1)]).to.deep.equal([101, 2773, 102]);
  });

  it('gives the known similarities in FP32', () => expectSimilarities(float, 0.0005));

  it('gives them in INT8 too, less exactly', () => expectSimilarities(int8, 0.02));

  it('loses little in INT8, and answers for a text alone as among others', async () => {
    const calibration = new Set(model.samples('calibration'));
    const evaluation = model.samples('evaluation');
    expect(evaluation.filter((sentence) => calibration.has(sentence))).to.deep.equal([]);
    expect(evaluation.length).to.be.at.least(200);
    const { candidate } = await compareEncoders({
      reference: float,
      candidate: int8,
      texts: model.tokens(evaluation),
      // Each costs half a second in FP32 on a busy machine.
      mateTrials: 10,
      measureMs: 1,
    });
    expect(candidate.cosineMean).to.be.at.least(0.995);
    expect(candidate.cosineLowest).to.be.at.least(0.98);
    expect(candidate.rankCorrelation).to.be.at.least(0.99);
    expect(candidate.mateDifference).to.be.at.most(1e-4);
    expect(candidate.bytes).to.be.within(22e6, 24e6);
  });
});
