import { expect } from 'chai';
import { post, predict } from './support/client.js';
import { Cluster } from './support/cluster.js';
import { cosine, distance, INT8_TOLERANCE, KNOWN_COSINES, MINILM } from './support/minilm.js';

interface Token {
  id: number;
  text: string;
  special: boolean;
  start: number | null;
  stop: number | null;
}

const CLS = { id: 101, text: '[CLS]', special: true, start: null, stop: null };
const SEP = { id: 102, text: '[SEP]', special: true, start: null, stop: null };

describe("text-embeddings-inference's addresses, with the real model", () => {
  let cluster: Cluster;
  const ask = async <Body>(path: string, body: object): Promise<Body> => {
    const response = await post(cluster.url + path, body);
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return JSON.parse(text) as Body;
  };

  before(async () => {
    cluster = await Cluster.start({ models: ['identity', MINILM] });
  });
  after(() => cluster.stop());

  it('embed as the native door does', async () => {
    const texts = KNOWN_COSINES.map(({ b }) => b);
    const { outputs } = await predict(cluster.url, MINILM, texts);
    for (const path of ['/', '/embed', `/models/${MINILM}/embed`]) {
      const vectors = await ask<number[][]>(path, { inputs: texts });
      expect(vectors).to.have.length(texts.length);
      for (const [i, vector] of vectors.entries())
        expect(distance(vector, outputs[i] ?? [])).to.be.below(1e-6);
    }
  });

  it('compare sentences as the published model does', async () => {
    const [{ a }] = KNOWN_COSINES;
    const sentences = KNOWN_COSINES.map(({ b }) => b);
    const found = await ask<number[]>('/similarity', { inputs: { source_sentence: a, sentences } });
    for (const [i, { cosine: known }] of KNOWN_COSINES.entries()) {
      expect(found[i]).to.be.closeTo(known, INT8_TOLERANCE);
    }
  });

  // What Hugging Face's own tokenizers answer to these texts with offsets counted in characters.
  it('tell the tokens of texts with their places', async () => {
    const inputs = ['naïve CAFÉ — 🙂🙂 tokenization', '中文 a[SEP]b'];
    const [first, second] = await ask<Token[][]>('/tokenize', { inputs });
    expect(first?.at(0)).to.deep.equal(CLS);
    expect(first?.at(-1)).to.deep.equal(SEP);
    expect(first?.slice(1, -1)).to.deep.equal([
      { id: 15743, text: 'naïve', special: false, start: 0, stop: 5 },
      { id: 7668, text: 'CAFÉ', special: false, start: 6, stop: 10 },
      { id: 1517, text: '—', special: false, start: 11, stop: 12 },
      { id: 100, text: '🙂🙂', special: false, start: 13, stop: 15 },
      { id: 19204, text: 'token', special: false, start: 16, stop: 21 },
      { id: 3989, text: 'ization', special: false, start: 21, stop: 28 },
    ]);
    expect(second?.slice(1, -1)).to.deep.equal([
      { id: 1746, text: '中', special: false, start: 0, stop: 1 },
      { id: 1861, text: '文', special: false, start: 1, stop: 2 },
      { id: 1037, text: 'a', special: false, start: 3, stop: 4 },
      { id: 102, text: '[SEP]', special: false, start: 4, stop: 9 },
      { id: 1038, text: 'b', special: false, start: 9, stop: 10 },
    ]);
  });

  it('make texts of tokens, and the same vectors of both', async () => {
    const text = 'that is a happy person';
    const [tokens] = await ask<Token[][]>('/tokenize', { inputs: text, add_special_tokens: false });
    const ids = tokens?.map(({ id }) => id) ?? [];
    expect(await ask('/decode', { ids })).to.deep.equal([text]);
    const marked = [101, ...ids, 102];
    expect(await ask('/decode', { ids: [marked], skip_special_tokens: false })).to.deep.equal([
      `[CLS] ${text} [SEP]`,
    ]);
    const [ofText] = await ask<number[][]>('/embed', { inputs: text });
    for (const inputs of [ids, [marked]]) {
      const [ofIds] = await ask<number[][]>('/embed', { inputs });
      expect(cosine(ofIds ?? [], ofText ?? [])).to.be.above(0.9999);
    }
    const unknown = await post(`${cluster.url}/decode`, { ids: [[101], [30_522]] });
    expect(unknown.status).to.equal(422);
    expect(await unknown.json()).to.deep.include({ error_type: 'Tokenizer' });
  });

  it('cut a long text unless they are told not to', async () => {
    const inputs = ['short', 'word '.repeat(1000)];
    const cut = await ask<number[][]>('/embed', { inputs, truncate: true });
    expect(cut).to.have.length(2);
    expect(await ask('/embed', { inputs })).to.deep.equal(cut);
    const refused = await post(`${cluster.url}/embed`, { inputs, truncate: false });
    expect(refused.status).to.equal(413);
    expect(await refused.json()).to.deep.equal({
      error: 'Of 2 inputs, 1 failed (1). inputs[1]: The text has more than 256 tokens.',
      error_type: 'Validation',
    });
  });

  it('tokenize large texts without holding up anything else', async () => {
    const inputs = Array.from({ length: 16 }, () => '! '.repeat(8000));
    let running = true;
    const tokenizing = ask<Token[][]>('/tokenize', { inputs }).finally(() => {
      running = false;
    });
    let between = 0;
    while (running) {
      await predict(cluster.url, MINILM, 'meanwhile');
      if (running) between++;
    }
    expect((await tokenizing).map((tokens) => tokens.length)).to.deep.equal(Array(16).fill(8002));
    expect(between, 'answers between').to.be.above(16);
  });
});
