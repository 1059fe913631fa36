import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type AnsweredLine, embeddingLine, fileOf, readLines, vectorOf } from './support/batch-lines.js';
import { Cluster } from './support/cluster.js';
import { CuttingProxy } from './support/cutting-proxy.js';
import { type MillraceProcess, MillraceRunner } from './support/millrace-process.js';
import { cosine, INT8_TOLERANCE, KNOWN_COSINES, MINILM, sampleSentences } from './support/minilm.js';

const HAPPY = KNOWN_COSINES[0].a;
/** More than fit into what the kernel holds of a connection. */
const MANY = 2000;

describe('millrace batch', function () {
  this.timeout(240_000);
  const runner = new MillraceRunner();
  let cluster: Cluster;
  let folder: string;

  before(async () => {
    cluster = await Cluster.start({ models: [MINILM] });
  });
  beforeEach(async () => {
    folder = await runner.folder();
  });
  afterEach(() => runner.clean());
  after(() => cluster?.stop());

  function batch(args: string[], env: Record<string, string> = {}, input?: string): MillraceProcess {
    return runner.run({
      args: ['batch', ...args],
      cwd: folder,
      env: { MILLRACE_URL: cluster.url, ...env },
      ...(input === undefined ? {} : { input }),
    });
  }

  async function write(name: string, content: string | Buffer): Promise<void> {
    await writeFile(join(folder, name), content);
  }

  async function read(name: string): Promise<AnsweredLine[]> {
    return readLines(await readFile(join(folder, name), 'utf8'));
  }

  async function ends(millrace: MillraceProcess, exitCode: number): Promise<string> {
    expect(await millrace.ended, millrace.output()).to.equal(exitCode);
    return millrace.output();
  }

  /** Lets a command run while no worker answers, up to `until`, then has the worker go on. */
  async function whileHeld(act: () => Promise<void>): Promise<void> {
    for (const worker of cluster.workers) worker.kill('SIGSTOP');
    try {
      await act();
    } finally {
      for (const worker of cluster.workers) worker.kill('SIGCONT');
    }
  }

  const texts = [HAPPY, ...KNOWN_COSINES.map(({ b }) => b)];
  const lines = texts.map((text, i) => embeddingLine(`text-${i}`, text));

  function expectKnownCosines(answered: AnsweredLine[]): void {
    expect(answered.map(({ custom_id }) => custom_id)).to.deep.equal(texts.map((_, i) => `text-${i}`));
    const [happy = [], ...others] = answered.map(vectorOf);
    for (const [i, { cosine: known }] of KNOWN_COSINES.entries()) {
      expect(cosine(happy, others[i] ?? [])).to.be.closeTo(known, INT8_TOLERANCE);
    }
  }

  it('sends a file, waits, and fetches the answers in the order of the lines', async () => {
    await write('lines.jsonl', fileOf(lines));
    // Of an earlier run.
    await write('lines.errors.jsonl', 'old\n');
    const said = await ends(batch(['lines.jsonl']), 0);
    expect(said).to.match(/^sending \(0 bytes of \d+ bytes\)$/m);
    expect(said).to.match(/^Batch batch_[0-9a-f]{32}$/m);
    expect(said).to.match(/^4 of 4 lines answered: lines\.out\.jsonl$/m);
    expectKnownCosines(await read('lines.out.jsonl'));
    expect((await readdir(folder)).sort()).to.deep.equal(['lines.jsonl', 'lines.out.jsonl']);
  });

  it('takes what is packed in gzip, and what is piped into it', async () => {
    await write('packed.jsonl.gz', gzipSync(fileOf(lines)));
    await ends(batch(['packed.jsonl.gz']), 0);
    expectKnownCosines(await read('packed.out.jsonl'));

    await ends(batch(['-', '--out', 'piped.jsonl'], {}, fileOf(lines)), 0);
    expectKnownCosines(await read('piped.jsonl'));
  });

  it('takes lines without an address for the endpoint that it is told', async () => {
    const body = { inputs: [HAPPY, KNOWN_COSINES[1].b] };
    await write('lines.jsonl', fileOf([JSON.stringify({ custom_id: 'both', body })]));
    await ends(batch(['lines.jsonl', '--endpoint', `/v1/models/${MINILM}/predict`]), 0);
    const [answer] = readLines<{ outputs: number[][] }>(
      await readFile(join(folder, 'lines.out.jsonl'), 'utf8'),
    );
    const [a = [], b = []] = answer?.response?.body.outputs ?? [];
    expect(cosine(a, b)).to.be.closeTo(KNOWN_COSINES[1].cosine, INT8_TOLERANCE);
  });

  it('ends with 2 where lines failed, and says how many, where they are and why', async () => {
    const [first = '', ...others] = lines;
    const unknown = JSON.stringify({ custom_id: 'nobody', body: { model: 'nobody', input: HAPPY } });
    await write('lines.jsonl', fileOf([first, '{"custom_id": "broken", ', unknown, ...others]));
    const said = await ends(batch(['lines.jsonl', '--out', 'a.jsonl', '--errors', 'e.jsonl']), 2);
    expect(said).to.match(/^4 of 6 lines answered: a\.jsonl$/m);
    expect(said).to.match(/^2 failed: e\.jsonl$/m);
    expect(said).to.match(/^The first is line 2: .*JSON/m);
    expectKnownCosines(await read('a.jsonl'));
    const [broken, refused, ...more] = await read('e.jsonl');
    expect(more).to.deep.equal([]);
    expect(broken).to.deep.include({ custom_id: null, line: 2, response: null });
    expect(broken?.error?.code).to.equal('invalid_json');
    expect(refused).to.deep.include({ custom_id: 'nobody', line: 3, error: null });
    expect(refused?.response?.status_code).to.equal(404);
    expect(refused?.response?.body.error?.code).to.equal('model_not_found');
  });

  it('leaves a batch at the server on Ctrl-C, and comes back to it by the command that it says', async () => {
    await write('my lines.jsonl', fileOf(lines));
    let command = '';
    let cancel = '';
    await whileHeld(async () => {
      const millrace = batch(['my lines.jsonl']);
      await millrace.says(/^running/m);
      millrace.signal('SIGINT');
      const said = await ends(millrace, 1);
      [, command = ''] = /^ {2}millrace (batch .*--resume batch_.*)$/m.exec(said) ?? [];
      [, cancel = ''] = /^ {2}millrace batch --cancel (batch_.*)$/m.exec(said) ?? [];
    });
    expect(command).to.equal(`batch 'my lines.jsonl' --resume ${cancel}`);
    await ends(batch(['my lines.jsonl', '--resume', cancel]), 0);
    expectKnownCosines(await read('my lines.out.jsonl'));
  });

  it('says on Ctrl-C that nothing is run where no batch was made yet', async () => {
    await write('lines.jsonl', fileOf(lines));
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    try {
      await once(silent, 'listening');
      const asked = once(silent, 'request');
      const millrace = batch([
        'lines.jsonl',
        '--url',
        `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
      ]);
      await asked;
      millrace.signal('SIGINT');
      expect(await ends(millrace, 1)).to.equal('Left before a batch was made: nothing is run.\n');
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  });

  it('pauses a batch, goes on with it, and cancels one', async () => {
    await write('lines.jsonl', fileOf(lines));
    await whileHeld(async () => {
      const millrace = batch(['lines.jsonl']);
      const [, id = ''] = await millrace.says(/^Batch (batch_.*)$/m);
      await millrace.says(/^running/m);
      expect(await ends(batch(['--pause', id]), 0)).to.equal(`Batch ${id} is paused.\n`);
      await millrace.says(/^paused/m);
      const resumed = batch(['--resume', id]);
      await resumed.says(/^running/m);
      expect(await ends(batch(['--cancel', id]), 0)).to.match(/^Batch batch_\S+ is cancell(ing|ed)\.\n$/);
      expect(await ends(resumed, 1)).to.match(/was cancelled\. 0 of \d lines answered/);
      await ends(millrace, 1);
    });
    expect(await ends(batch(['--cancel', 'batch_nobody']), 1)).to.match(/no such batch.*GET \/v1\/batches/i);
  });

  it('goes on where the sending, the asking or the fetching broke off', async () => {
    const sentences = await sampleSentences();
    const many = Array.from({ length: MANY }, (_, i) => `${sentences[i % sentences.length]} ${i}`);
    await write('lines.jsonl', fileOf(many.map((text, i) => embeddingLine(`${i}`, text))));
    const before = { files: await listed('files'), batches: await listed('batches') };
    const proxy = await CuttingProxy.start(cluster.url, [
      { method: 'POST', path: /^\/v1\/files$/, of: 'request', after: 100_000 },
      { method: 'POST', path: /^\/v1\/files$/, of: 'answer', after: 0 },
      { method: 'POST', path: /^\/v1\/batches$/, of: 'answer', after: 10 },
      { method: 'GET', path: /^\/v1\/batches\/batch_\w+$/, of: 'answer', after: 0 },
      { method: 'GET', path: /\/content$/, of: 'answer', after: 1_000_000 },
      { method: 'GET', path: /\/content$/, of: 'answer', after: 1_000_000 },
    ]);
    try {
      await ends(batch(['lines.jsonl', '--url', proxy.url]), 0);
      expect(proxy.left).to.deep.equal([]);
      const from = proxy.calls.flatMap((call) => /content (\d+)$/.exec(call)?.[1] ?? []).map(Number);
      expect(from).to.have.length(3);
      expect(from[0]).to.equal(0);
      expect(from[1]).to.be.within(1, 1_000_000);
      expect(from[2]).to.be.within(1_000_001, 2_000_000);
    } finally {
      proxy.stop();
    }
    // One of each, and the answers.
    expect(await listed('batches')).to.have.length(before.batches.length + 1);
    expect(await listed('files')).to.have.length(before.files.length + 2);
    const answered = await read('lines.out.jsonl');
    expect(answered.map(({ custom_id }) => custom_id)).to.deep.equal(many.map((_, i) => `${i}`));
    expect(answered.filter((line) => vectorOf(line).length !== 384)).to.deep.equal([]);
  });

  async function listed(what: 'files' | 'batches'): Promise<unknown[]> {
    const answer = await fetch(`${cluster.url}/v1/${what}?limit=100`);
    return ((await answer.json()) as { data: unknown[] }).data;
  }

  it('waits for a server that is started again meanwhile', async () => {
    const gateway = await cluster.addGateway();
    const port = new URL(gateway.url).port;
    await write('lines.jsonl', fileOf(lines));
    let millrace: MillraceProcess | undefined;
    await whileHeld(async () => {
      millrace = batch(['lines.jsonl'], { MILLRACE_URL: gateway.url });
      await millrace.says(/^running/m);
      gateway.kill('SIGKILL');
      await gateway.ended;
      await millrace.says(/^retrying.*No answer from/m);
      await cluster.addGateway({ MILLRACE_PORT: port });
    });
    if (millrace) await ends(millrace, 0);
    expectKnownCosines(await read('lines.out.jsonl'));
  });

  it('deletes what the server keeps of it where it is told to', async () => {
    await write('lines.jsonl', fileOf(lines));
    const before = await listed('files');
    await ends(batch(['lines.jsonl', '--delete']), 0);
    expect(await listed('files')).to.deep.equal(before);
    expect((await stat(join(folder, 'lines.out.jsonl'))).size).to.be.above(1000);
  });

  it('leaves no file at the server where no batch can be made of it', async () => {
    await write('lines.jsonl', fileOf(lines));
    const before = await listed('files');
    for (const wrong of [
      ['--window', 'soon'],
      ['--endpoint', '/v1/chat'],
    ]) {
      await ends(batch(['lines.jsonl', ...wrong]), 1);
    }
    expect(await listed('files')).to.deep.equal(before);
  });

  it('says what is wrong and what to do about it', async () => {
    await write('lines.jsonl', fileOf(lines));
    await write('empty.jsonl', '');
    const nobody = 'http://127.0.0.1:1';
    for (const [args, says] of [
      [[], /no file to run.*--resume/],
      [['none.jsonl'], /no file none\.jsonl.*custom_id/],
      [['empty.jsonl'], /empty\.jsonl is empty/],
      [['.'], /\. is no file.*"-"/],
      [
        ['lines.jsonl', '--url', nobody],
        /No answer from http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\).*millrace up.*--url/,
      ],
      [['lines.jsonl', '--url', 'localhost'], /not the address.*http:\/\/HOST:PORT/],
      [['lines.jsonl', '--out', 'none/out.jsonl'], /Nothing can be written into none/],
      [['lines.jsonl', '--out', 'lines.jsonl'], /three files/],
      [['lines.jsonl', '--out', '-'], /--out must be a file/],
      [['lines.jsonl', '--window', 'soon'], /completion_window/],
      [['lines.jsonl', '--endpoint', '/v1/chat'], /endpoint.*\/v1\/chat/],
      [['--resume', 'batch_nobody'], /no such batch/i],
      [['--resume', '../batch'], /not the id of a batch/],
      [['--resume', 'a', '--cancel', 'b'], /do not go together/],
    ] as const) {
      expect(await ends(batch([...args]), 1)).to.match(says);
    }
    expect((await readdir(folder)).sort()).to.deep.equal(['empty.jsonl', 'lines.jsonl']);
  });

  it('asks for an API key where the server does, and takes it from the environment', async () => {
    const key = runner.run({ args: ['keys', 'alice'] });
    await key.ended;
    const [, secret = '', entry = ''] = /once: (\S+)\n.*: (\S+)\n/.exec(key.output()) ?? [];
    const gateway = await cluster.addGateway({ MILLRACE_API_KEYS: entry });
    const env = { MILLRACE_URL: gateway.url };
    await write('lines.jsonl', fileOf(lines));
    expect(await ends(batch(['lines.jsonl'], env), 1)).to.match(/asks for an API key.*MILLRACE_API_KEY/);
    expect(await ends(batch(['lines.jsonl', '--api-key', 'wrong'], env), 1)).to.match(
      /does not know this API key/,
    );
    await ends(batch(['lines.jsonl'], { ...env, MILLRACE_API_KEY: secret }), 0);
    expectKnownCosines(await read('lines.out.jsonl'));
  });
});
