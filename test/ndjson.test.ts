import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { MillraceApiError, MillraceClient } from '@millrace/client';
import { expect } from 'chai';
import { type AnsweredLine, StreamClient } from '#gateway/test-support/stream-client.js';
import { predict, until } from './support/client.js';
import { Cluster } from './support/cluster.js';
import { cosine, MINILM } from './support/minilm.js';

const run = promisify(execFile);
const MIB = 1024 * 1024;

/** The shell command of the section on streams in docs/doors.md. */
async function documented(): Promise<string> {
  const text = await readFile(new URL('../../docs/doors.md', import.meta.url), 'utf8');
  return /## Streams[\s\S]*?```sh\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
}

/** Memory that a process has resident, in bytes. */
async function resident(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

describe('streams of lines, with real processes', () => {
  let cluster: Cluster;
  const url = (model: string, query = ''): string => `${cluster.url}/v1/models/${model}/predict${query}`;

  before(async () => {
    cluster = await Cluster.start({ models: [MINILM, 'identity'], workers: 1 });
  });
  after(() => cluster.stop());

  it('are what docs/doors.md says', async () => {
    const env = { ...process.env, MILLRACE_URL: cluster.url };
    const { stdout } = await run('sh', ['-c', await documented()], { env });
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AnsweredLine);
    expect(lines.map(({ line }) => line)).to.deep.equal([1, 2, 3]);
    expect(lines[0]?.outputs?.[0]).to.have.length(384);
    expect(lines[1]?.outputs).to.have.length(2);
    expect(lines[2]?.error).to.include({ status: 400, code: 'invalid_input', field: 'inputs' });
  });

  it('give each line the answer that it would get alone', async () => {
    const sentences = Array.from(
      { length: 60 },
      (_, i) => `A sentence of ${'many '.repeat(i % 9)}words, number ${i}.`,
    );
    const client = new StreamClient(url(MINILM));
    for (const inputs of sentences) client.send({ inputs });
    await client.end().over;
    expect(client.lines).to.have.length(60);
    for (const i of [0, 31, 59]) {
      const alone = (await predict(cluster.url, MINILM, sentences[i])).outputs[0] ?? [];
      expect(cosine(client.lines[i]?.outputs?.[0] as number[], alone)).to.be.above(0.9999);
    }
  });

  it('bring 10,000 lines through, in order', async () => {
    const client = new StreamClient(url('identity'));
    for (let i = 1; i <= 10_000; i++) client.send({ inputs: { int64: [i] } });
    await client.end().over;
    expect(client.complete).to.equal(true);
    expect(client.lines).to.have.length(10_000);
    for (const [index, { line, outputs }] of client.lines.entries()) {
      if (line !== index + 1) expect.fail(`line ${line} is at place ${index + 1}`);
      expect(outputs).to.deep.equal([{ int64_out: [line] }]);
    }
  });

  it('take no more memory for a client that does not read', async () => {
    const [gateway] = cluster.gateways;
    const client = new StreamClient(url('identity'), {}, false);
    const line = `${JSON.stringify({ inputs: { bytes: ['x'.repeat(100_000)] } })}\n`;
    const before = await resident(gateway?.pid ?? 0);
    let offered = 0;
    let most = 0;
    while (offered < 300 * MIB) {
      offered += line.length;
      if (client.request.write(line)) continue;
      const drained = new Promise((resolve) => client.request.once('drain', () => resolve(true)));
      const waited = new Promise((resolve) => setTimeout(() => resolve(false), 1500));
      most = Math.max(most, (await resident(gateway?.pid ?? 0)) - before);
      if (!(await Promise.race([drained, waited]))) break;
    }
    expect(offered, 'taken before reading stopped').to.be.below(100 * MIB);
    expect(most, 'memory').to.be.below(150 * MIB);
    await client.read();
    await until(() => client.lines.length > 0);
    await client.end().over;
    expect(client.lines.map(({ line: number }) => number)).to.deep.equal(
      Array.from({ length: client.lines.length }, (_, i) => i + 1),
    );
    expect(client.lines.every(({ outputs }) => outputs !== undefined)).to.equal(true);
  });

  describe('from the client', () => {
    let client: MillraceClient;
    before(() => {
      client = new MillraceClient({ baseUrl: cluster.url });
    });

    async function* texts(count: number) {
      for (let i = 1; i <= count; i++) yield i === 3 ? '' : `A sentence, number ${i}.`;
    }

    it('are answered as they come, each with its output or its error', async () => {
      for (const order of ['input', 'finished'] as const) {
        const numbers: number[] = [];
        for await (const answer of client.predictStream(MINILM, texts(50), { order })) {
          numbers.push(answer.line);
          if (answer.error) {
            expect(answer.line).to.equal(3);
            expect(answer.error).to.be.instanceOf(MillraceApiError);
            expect(answer.error).to.include({ status: 400, code: 'invalid_input', field: 'inputs' });
          } else {
            expect(answer.outputs[0]).to.have.length(384);
          }
        }
        if (order === 'finished') numbers.sort((a, b) => a - b);
        expect(numbers).to.deep.equal(Array.from({ length: 50 }, (_, i) => i + 1));
      }
    });

    it('are answered before more is sent', async () => {
      let sent = 0;
      let answered = 0;
      async function* oneByOne() {
        for (; sent < 5; sent++) {
          await until(() => answered === sent);
          yield { int64: [sent] };
        }
      }
      for await (const { line } of client.predictStream('identity', oneByOne())) {
        expect(line).to.equal(sent);
        answered += 1;
      }
      expect(answered).to.equal(5);
    });

    it('take no more of their inputs than they get answers for', async () => {
      let taken = 0;
      function* endless() {
        for (;;) {
          taken += 1;
          yield { bytes: ['x'.repeat(100_000)] };
        }
      }
      for await (const { line } of client.predictStream('identity', endless())) {
        if (line === 20) break;
      }
      const before = taken;
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(taken).to.equal(before).and.below(1000);
    });

    it('fail as a whole for what is wrong with the whole, and with what their inputs fail with', async () => {
      const failure = async (answers: AsyncIterable<unknown>): Promise<unknown> => {
        try {
          for await (const _ of answers);
        } catch (error) {
          return error;
        }
        return undefined;
      };
      expect(await failure(client.predictStream('nobody', ['a']))).to.include({ code: 'model_not_found' });
      const own = new Error('my own');
      async function* failing() {
        yield 'a';
        throw own;
      }
      expect(await failure(client.predictStream(MINILM, failing()))).to.equal(own);
      const controller = new AbortController();
      const stream = client.predictStream(MINILM, texts(1000), { signal: controller.signal });
      await stream.next();
      controller.abort(own);
      expect(await failure(stream)).to.equal(own);
    });
  });
});
