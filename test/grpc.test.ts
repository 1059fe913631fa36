import { expect } from 'chai';
import { GrpcClient, type InferAnswer, textCall } from '#gateway/test-support/grpc-client.js';
import { predict, until } from './support/client.js';
import { Cluster } from './support/cluster.js';
import {
  cosine,
  distance,
  INT8_TOLERANCE,
  KNOWN_COSINES,
  MINILM,
  sampleSentences,
} from './support/minilm.js';

/** Of gRPC's statuses. */
const OK = 0;
const CANCELLED = 1;

describe('gRPC, with real models', () => {
  let cluster: Cluster;
  let client: GrpcClient;

  before(async function () {
    this.timeout(120_000);
    // However busy the machine: how fast it is, is no matter here.
    const env = { MILLRACE_WAIT_MS: '170000', MILLRACE_MAX_WAIT_MS: '170000' };
    cluster = await Cluster.start({ models: [MINILM, 'identity'], env });
    client = new GrpcClient(cluster.gateways[0]?.grpc ?? '');
  });
  after(async () => {
    client?.close();
    await cluster?.stop();
  });
  const embed = async (texts: string[]): Promise<number[][]> => {
    return vectorsOf((await client.infer(textCall(MINILM, texts))).body);
  };

  it('gives the vectors that the model is known for', async () => {
    for (const { a, b, cosine: known } of KNOWN_COSINES) {
      const [x = [], y = []] = await embed([a, b]);
      expect(x).to.have.length(384);
      expect(cosine(x, y)).to.be.closeTo(known, INT8_TOLERANCE);
    }
  });

  it('gives the same vectors as the native door, alone and on a stream', async () => {
    const texts = (await sampleSentences()).slice(0, 100);
    const { outputs } = await predict(cluster.url, MINILM, texts);
    for (const [i, vector] of (await embed(texts)).entries()) {
      expect(distance(vector, outputs[i] ?? [])).to.be.below(1e-3);
    }
    const stream = client.stream();
    for (const [i, text] of texts.entries()) stream.send(textCall(MINILM, [text], { id: String(i) }));
    stream.end();
    expect((await stream.ended).code).to.equal(OK);
    expect(stream.answers).to.have.length(texts.length);
    for (const { error_message, infer_response } of stream.answers) {
      expect(error_message).to.equal('');
      const [vector = []] = infer_response ? vectorsOf(infer_response) : [];
      expect(distance(vector, outputs[Number(infer_response?.id)] ?? [])).to.be.below(1e-3);
    }
  });

  it('returns tensors bit by bit', async () => {
    const raw = Buffer.alloc(8 * 6);
    for (let i = 0; i < 6; i++) raw.writeBigInt64LE(2n ** 62n + BigInt(i), 8 * i);
    const { body } = await client.infer({
      model_name: 'identity',
      inputs: [{ name: 'int64', datatype: 'INT64', shape: [2, 3] }],
      outputs: [{ name: 'int64_out' }],
      raw_input_contents: [raw],
    });
    expect(body.outputs[0]).to.deep.include({ name: 'int64_out', datatype: 'INT64', shape: [2, 3] });
    expect(body.raw_output_contents).to.deep.equal([raw]);
  });

  it('frees the model of what a client gave up', async () => {
    const texts = await sampleSentences();
    const cancel = new AbortController();
    const call = textCall(MINILM, Array(2048).fill(texts[0]));
    const refused = client.refusal(client.infer(call, { cancelled: cancel.signal }));
    const waiting = async (): Promise<number> => {
      const metrics = await (await fetch(`${cluster.url}/metrics`)).text();
      return Number(/millrace_gateway_waiting_requests (\d+)/.exec(metrics)?.[1]);
    };
    await until(async () => (await waiting()) === 1);
    cancel.abort();
    expect((await refused).code).to.equal(CANCELLED);
    await until(async () => (await waiting()) === 0);
    expect(await embed(['still here'])).to.have.length(1);
  });
});

/** One vector an item, of the first output. */
function vectorsOf({ outputs, raw_output_contents }: InferAnswer): number[][] {
  const [items = 0, size = 0] = outputs[0]?.shape ?? [];
  const bytes = raw_output_contents[0] ?? Buffer.alloc(0);
  return Array.from({ length: items }, (_, i) =>
    Array.from({ length: size }, (_, j) => bytes.readFloatLE(4 * (i * size + j))),
  );
}
