import { expect } from 'chai';
import {
  type Checkpoint,
  randomCheckpoint,
  randomTexts,
  rawSafetensors,
  TINY_BERT,
} from '../test-support/checkpoint.js';
import { embedWith, largestDifference } from '../test-support/embed.js';
import { forward } from '../test-support/forward.js';
import { buildEncoder } from './build.js';
import { type Pooling, UnsupportedModelError } from './config.js';

const TINY_ROBERTA = { ...TINY_BERT, model_type: 'xlm-roberta', pad_token_id: 1, layer_norm_eps: 1e-5 };
const TINY_DISTILBERT = {
  model_type: 'distilbert',
  dim: 32,
  n_layers: 2,
  n_heads: 4,
  hidden_dim: 64,
  activation: 'gelu',
  max_position_embeddings: 40,
};

const TOLERANCE = 1e-5;

/** Builds, runs a padded batch and compares every text with the reference computation of it alone. */
async function check(checkpoint: Checkpoint, pooling: Pooling = 'mean', normalize = true): Promise<void> {
  const model = buildEncoder({ ...checkpoint, pooling, normalize });
  const texts = randomTexts(6);
  const embeddings = await embedWith(model, texts, 25);
  embeddings.forEach((embedding, i) => {
    const right = forward(checkpoint, texts[i] ?? [], pooling, normalize);
    expect(largestDifference(embedding, right)).to.be.below(TOLERANCE);
  });
}

describe('an encoder built from safetensors', () => {
  it('equals the plain computation', () => check(randomCheckpoint(TINY_BERT)));
  it('does so with a prefix on the names', () => check(randomCheckpoint(TINY_BERT, 'bert.')));
  it('does so for RoBERTa, whose positions start after the padding id', () =>
    check(randomCheckpoint(TINY_ROBERTA, 'roberta.')));
  it('does so for DistilBERT, which has other names and no token types', () =>
    check(randomCheckpoint(TINY_DISTILBERT, 'distilbert.')));
  it('pools the first token if asked', () => check(randomCheckpoint(TINY_BERT), 'cls'));
  it('leaves the length alone if asked', () => check(randomCheckpoint(TINY_BERT), 'mean', false));
  for (const hidden_act of ['gelu_new', 'quick_gelu', 'relu', 'silu']) {
    it(`knows ${hidden_act}`, () => check(randomCheckpoint({ ...TINY_BERT, hidden_act })));
  }

  it('answers zeros, not NaN, for a text without tokens', async () => {
    const model = buildEncoder({ ...randomCheckpoint(TINY_BERT), pooling: 'mean', normalize: false });
    const [empty] = await embedWith(model, [[], [1, 2]]);
    expect(Math.max(...(empty ?? []))).to.equal(0);
  });

  it('is the same file each time', () => {
    const source = { ...randomCheckpoint(TINY_BERT), pooling: 'mean', normalize: true } as const;
    expect(Buffer.from(buildEncoder(source)).equals(buildEncoder(source))).to.equal(true);
  });
});

describe('an encoder that cannot be built', () => {
  const build = (changes: Record<string, unknown>, weights = randomCheckpoint(TINY_BERT).safetensors) =>
    buildEncoder({
      safetensors: weights,
      config: { ...TINY_BERT, ...changes },
      pooling: 'mean',
      normalize: true,
    });

  const refused: [Record<string, unknown>, RegExp][] = [
    [{ model_type: 't5' }, /model_type "t5" is not supported \(supported: bert, /],
    [{ hidden_act: 'mish' }, /hidden_act "mish" is not supported/],
    [{ hidden_act: 'constructor' }, /hidden_act "constructor" is not supported/],
    [{ position_embedding_type: 'relative_key' }, /position_embedding_type "relative_key"/],
    [{ is_decoder: true }, /is_decoder true/],
    [{ num_attention_heads: 5 }, /5 heads don't divide a hidden size of 32/],
    [{ num_hidden_layers: 0 }, /num_hidden_layers must be more than 0/],
    [{ intermediate_size: '64' }, /intermediate_size must be a whole number, not "64"/],
    [{ layer_norm_eps: 0 }, /layer_norm_eps/],
    [{ embedding_size: 16 }, /embedding_size 16/],
    [{ vocab_size: 51 }, /word_embeddings.weight is \[50, 32\], config.json wants \[51, 32\]/],
    [{ intermediate_size: 65 }, /encoder.layer.0.intermediate.dense.weight is \[64, 32\]/],
    [{ num_hidden_layers: 3 }, /no tensor encoder.layer.2/],
    [{ model_type: 'roberta', max_position_embeddings: 2 }, /leaves no place/],
  ];
  for (const [changes, message] of refused) {
    it(`is refused for ${JSON.stringify(changes)}`, () => {
      expect(() => build(changes)).to.throw(UnsupportedModelError, message);
    });
  }

  it('is refused without a word table, and without an object for its configuration', () => {
    expect(() => build({}, rawSafetensors('{}'))).to.throw(/no tensor embeddings.word_embeddings.weight/);
    expect(() =>
      buildEncoder({ safetensors: rawSafetensors('{}'), config: 'bert', pooling: 'mean', normalize: true }),
    ).to.throw(/config.json is not an object/);
  });
});
