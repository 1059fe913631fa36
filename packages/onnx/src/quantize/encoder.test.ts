import { expect } from 'chai';
import { cosine } from '../compare/similarity.js';
import { buildEncoder } from '../encoder/build.js';
import { randomCheckpoint, randomTexts, TINY_BERT } from '../test-support/checkpoint.js';
import { embedWith, largestDifference } from '../test-support/embed.js';
import { quantizeEncoder, searchRecipe } from './encoder.js';
import { formatRecipe, parseRecipe, type Recipe, RecipeError } from './recipe.js';

const source = { ...randomCheckpoint(TINY_BERT), pooling: 'mean', normalize: true } as const;
const texts = randomTexts(40, 21);

describe('a quantized encoder', () => {
  let recipe: Recipe;
  let model: Uint8Array;
  const stages: [string, number][] = [];

  before(async () => {
    recipe = await searchRecipe(source, randomTexts(60), (stage, fraction) => stages.push([stage, fraction]));
    model = quantizeEncoder(source, recipe);
  });

  it('is close to the exact one', async () => {
    const exact = await embedWith(buildEncoder(source), texts);
    const quantized = await embedWith(model, texts);
    quantized.forEach((embedding, i) => {
      expect(cosine(embedding, exact[i] ?? embedding)).to.be.above(0.995);
    });
  });

  it('answers for a text alone as among others, at any padding', async () => {
    const together = await embedWith(model, texts, 37);
    for (const [i, text] of texts.entries()) {
      const [alone] = await embedWith(model, [text]);
      expect(largestDifference(alone ?? [], together[i] ?? [])).to.be.below(1e-5);
    }
  });

  it('comes from its recipe alone, to the byte', () => {
    const again = quantizeEncoder(source, parseRecipe(formatRecipe(recipe)));
    expect(Buffer.from(again).equals(model)).to.equal(true);
  });

  it('has a recipe that another search finds again', async () => {
    expect(formatRecipe(await searchRecipe(source, randomTexts(60)))).to.equal(formatRecipe(recipe));
  });

  it('says how far the search is, up to the end', () => {
    expect(stages).to.have.length(8);
    expect(stages.at(-1)).to.deep.equal(['search', 1]);
  });

  it('is refused with the recipe of other weights', () => {
    const other = randomCheckpoint(TINY_BERT, '', 2);
    expect(() => quantizeEncoder({ ...source, safetensors: other.safetensors }, recipe)).to.throw(
      RecipeError,
      /the recipe is for weights [0-9a-f]{64}, these are/,
    );
  });

  it('is refused with a recipe that lacks a matmul or has one of another width', () => {
    const { 'layer1.up': up, ...others } = recipe.matmuls;
    if (up === undefined) throw new Error('no layer1.up');
    expect(() => quantizeEncoder(source, { ...recipe, matmuls: others })).to.throw(
      RecipeError,
      /no layer1.up/,
    );
    const narrow = { ...up, channelMaxima: up.channelMaxima.subarray(1) };
    expect(() =>
      quantizeEncoder(source, { ...recipe, matmuls: { ...others, 'layer1.up': narrow } }),
    ).to.throw(RecipeError, /layer1.up: 31 channels in the recipe, 32 in the model/);
  });

  it('cannot be searched for without texts', async () => {
    const failure = await searchRecipe(source, []).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(RangeError);
  });
});

describe('a recipe file', () => {
  const entry = { alpha: 0.5, clip: 1, scale: 0.1, zeroPoint: 3, channelMaxima: 'AQID' };
  const file = (changes: object, recipe: object = {}): string =>
    JSON.stringify({
      format: 1,
      weightsSha256: 'ab',
      matmuls: { 'layer0.up': { ...entry, ...changes } },
      ...recipe,
    });

  it('is read', () => {
    expect(parseRecipe(file({}))).to.deep.equal({
      weightsSha256: 'ab',
      matmuls: { 'layer0.up': { ...entry, channelMaxima: Uint8Array.of(1, 2, 3) } },
    });
  });

  const broken: [string, string, RegExp][] = [
    ['that is no JSON', '{', /not JSON/],
    ['of another format', file({}, { format: 2 }), /not of format 1/],
    ['without weights', file({}, { weightsSha256: 1 }), /lacks weightsSha256/],
    ['without matmuls', file({}, { matmuls: [] }), /lacks weightsSha256 or matmuls/],
    ['with an alpha of 2', file({ alpha: 2 }), /layer0.up: alpha/],
    ['with no clip', file({ clip: null }), /layer0.up: clip/],
    ['with a scale of 0', file({ scale: 0 }), /layer0.up: scale/],
    ['with a broken zero point', file({ zeroPoint: 1.5 }), /layer0.up: zeroPoint/],
    ['with maxima in a list', file({ channelMaxima: [1] }), /layer0.up: channelMaxima/],
  ];
  for (const [what, text, message] of broken) {
    it(`is refused ${what}`, () => {
      expect(() => parseRecipe(text)).to.throw(RecipeError, message);
    });
  }
});
