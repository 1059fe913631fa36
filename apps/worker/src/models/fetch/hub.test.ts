import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { closedPort, etagOf, HubServer } from './testing/hub-server.js';
import { ModelFolder } from './testing/model-folder.js';
import type { PrepareProgress } from './types.js';

const SOURCES = [
  { hub: { repo: 'org/first', revision: 'v1' } },
  { hub: { repo: 'org/second', revision: 'main' } },
];

describe('files from the hub', function () {
  // Real sockets on a machine that may be busy.
  this.timeout(60_000);
  let hub: HubServer;
  let folder: ModelFolder;
  let env: NodeJS.ProcessEnv;

  beforeEach(async () => {
    hub = new HubServer();
    await hub.start();
    folder = await ModelFolder.make(SOURCES);
    env = { HF_ENDPOINT: hub.endpoint };
  });
  afterEach(async () => {
    await hub.stop();
    await folder.remove();
  });

  function offer(
    repo: 'org/first/v1' | 'org/second/main',
    files: Record<string, Buffer> = folder.files,
  ): void {
    for (const [name, content] of Object.entries(files)) hub.files.set(`${repo}/${name}`, content);
  }

  /** Breaks held connections when some of their bytes have been taken. */
  const cutInTheMiddle = ({ bytes = 0 }: PrepareProgress) => {
    if (bytes > 0) hub.cutHeld();
  };

  async function expectPrepared(): Promise<void> {
    const { files } = await folder.prepare(env, { onProgress: cutInTheMiddle });
    for (const [name, content] of Object.entries(folder.files)) {
      expect(await readFile(files[name] ?? ''), name).to.deep.equal(content);
    }
  }

  it('follows the redirect, keeps the token from the other host, and needs no hub afterwards', async () => {
    offer('org/first/v1');
    const progress: PrepareProgress[] = [];
    const prepared = await folder.prepare(
      { ...env, HF_TOKEN: 'hf_secret' },
      { onProgress: (event) => progress.push(event) },
    );
    expect(prepared.modelFile).to.equal(folder.cached('model.onnx'));
    expect(prepared.files).to.deep.equal({
      'model.onnx': folder.cached('model.onnx'),
      'vocab/words.txt': folder.cached('vocab/words.txt'),
    });
    expect(hub.seen.map(({ at, authorization }) => `${at} ${authorization}`)).to.deep.equal([
      'hub Bearer hf_secret',
      'store undefined',
      'hub Bearer hf_secret',
      'store undefined',
    ]);
    const fetched = progress.filter(({ step }) => step === 'fetch');
    expect(fetched.at(-1)).to.include({ fraction: 1, bytes: 305_000, totalBytes: 305_000 });
    expect(progress.at(-1)).to.include({ step: 'ready', fraction: 1 });
    await folder.prepare(env);
    expect(hub.seen).to.have.length(4);
  });

  it("reads the token that the hub's own login left, and does without one that has expired", async () => {
    offer('org/first/v1');
    await writeFile(join(folder.root, 'token'), 'hf_file\n');
    hub.expiredTokens.add('hf_file');
    await expectPrepared();
    expect(hub.seen.slice(0, 2).map(({ authorization }) => authorization)).to.deep.equal([
      'Bearer hf_file',
      undefined,
    ]);
  });

  it('takes a cut connection up again where it stopped', async () => {
    offer('org/first/v1');
    hub.moods.push({ holdAfter: 100_000 }, { holdAfter: 50_000 });
    await expectPrepared();
    const [first, second, third] = hub.storeRequests();
    expect(first?.range).to.equal(undefined);
    expect(Number(second?.range?.match(/^bytes=(\d+)-$/)?.[1])).to.be.within(1, 100_000);
    expect(Number(third?.range?.match(/^bytes=(\d+)-$/)?.[1])).to.be.within(1, 150_000);
    expect(second?.ifRange).to.equal(etagOf(folder.files['model.onnx']));
  });

  it('gives a source up that cuts every connection at once, and takes the next', async () => {
    offer('org/first/v1');
    offer('org/second/main');
    hub.moods.push({ cut: true }, { cut: true }, { cut: true });
    await expectPrepared();
    expect(hub.storeRequests().map(({ path }) => path.slice(0, 10))).to.deep.equal([
      'org/first/',
      'org/first/',
      'org/first/',
      'org/second',
      'org/second',
    ]);
  });

  it('takes up again what stalls in the middle', async () => {
    offer('org/first/v1');
    hub.moods.push({ holdAfter: 100_000 });
    await folder.prepare(env, { limits: { idleMs: 200 } });
    expect(hub.storeRequests()[1]?.range).to.match(/^bytes=\d+-$/);
  });

  it('goes on with what an interrupted start left', async () => {
    offer('org/first/v1');
    hub.moods.push({ holdAfter: 100_000 });
    const interrupt = new AbortController();
    const reason = new Error('interrupted');
    const onProgress = ({ bytes = 0 }: PrepareProgress) => {
      if (bytes > 0) interrupt.abort(reason);
    };
    const ended = await folder.refusal(env, { onProgress, signal: interrupt.signal });
    expect(ended).to.equal(reason);
    await expectPrepared();
    expect(hub.storeRequests()[1]?.range).to.match(/^bytes=[1-9]\d*-$/);
  });

  it('starts over when ranges are ignored', async () => {
    offer('org/first/v1');
    hub.moods.push({ holdAfter: 100_000 }, { ignoreRange: true });
    await expectPrepared();
    expect(hub.storeRequests()).to.have.length(3);
  });

  it('starts over when what it has is of another file', async () => {
    const other = Buffer.alloc(300_000, 1);
    hub.linked = false;
    offer('org/first/v1', { 'model.onnx': other });
    hub.moods.push({ holdAfter: 100_000 }, { status: 404 });
    await folder.refusal(env, { onProgress: cutInTheMiddle });
    offer('org/first/v1');
    await expectPrepared();
    const resumed = hub.storeRequests()[2];
    expect(resumed?.range).to.match(/^bytes=[1-9]\d*-$/);
    expect(resumed?.ifRange).to.equal(etagOf(other));
  });

  it('starts over once when a resumed file turns out wrong', async () => {
    offer('org/first/v1');
    hub.moods.push({ holdAfter: 100_000 }, { status: 404 });
    await folder.refusal(env, { onProgress: cutInTheMiddle });
    const { part, etag } = await folder.unfinished();
    await writeFile(part, Buffer.alloc(50_000, 7));
    expect(await readFile(etag, 'utf8')).to.equal(etagOf(folder.files['model.onnx']));
    await expectPrepared();
  });

  it('deletes a wrong file and takes the next source', async () => {
    hub.linked = false;
    offer('org/first/v1', { ...folder.files, 'model.onnx': Buffer.alloc(300_000, 1) });
    offer('org/second/main');
    await expectPrepared();
    const asked = hub.storeRequests().map(({ path }) => path);
    expect(asked).to.deep.equal([
      'org/first/v1/model.onnx',
      'org/first/v1/vocab/words.txt',
      'org/second/main/model.onnx',
    ]);
  });

  it('does not download what the hub says is another file', async () => {
    offer('org/first/v1', { ...folder.files, 'model.onnx': Buffer.alloc(300_000, 1) });
    offer('org/second/main', { ...folder.files, 'model.onnx': Buffer.alloc(299_999) });
    const refusal = await folder.refusal(env);
    expect(refusal.message).to.match(
      /another file, with the sha256 [0-9a-f]{64}.*299999 bytes instead of 300000/,
    );
    expect(hub.storeRequests().filter(({ path }) => path.endsWith('model.onnx'))).to.deep.equal([]);
  });

  it('stops reading a body that is longer than the file', async () => {
    hub.linked = false;
    offer('org/first/v1', { 'model.onnx': Buffer.alloc(5_000_000) });
    hub.moods.push({ chunked: true });
    expect((await folder.refusal(env)).message).to.include('another file, not of 300000 bytes');
  });

  it('leaves a source that does not answer, for all files, and takes the next', async () => {
    hub.silent.add('org/first');
    offer('org/second/main');
    await folder.prepare(env, { limits: { firstByteMs: 700 } });
    expect(hub.seen.filter(({ path }) => path.startsWith('org/first'))).to.have.length(1);
  });

  it('tries again what is overloaded for a moment', async () => {
    offer('org/first/v1');
    hub.moods.push({ status: 503 });
    await expectPrepared();
  });

  it('says plainly what the hub refuses', async () => {
    hub.refusals.set('org/first', 401);
    hub.refusals.set('org/second', 403);
    const { message } = await folder.refusal(env);
    expect(message).to.include('it answered 401: no such repository, or it needs a token in HF_TOKEN');
    expect(message).to.include('it answered 403: the token in HF_TOKEN may not read this repository');
    hub.refusals.clear();
    expect((await folder.refusal(env)).message).to.include(
      'it answered 404: no such repository, revision or file',
    );
  });

  it('is not asked when HF_HUB_OFFLINE is set', async () => {
    offer('org/first/v1');
    const { message } = await folder.refusal({ ...env, HF_HUB_OFFLINE: '1' });
    expect(message).to.include('HF_HUB_OFFLINE is set');
    expect(hub.seen).to.deep.equal([]);
  });

  it('says which sources were tried and how to place the files by hand', async () => {
    const port = await closedPort();
    const { name, message, nextStep } = await folder.refusal({ HF_ENDPOINT: `http://127.0.0.1:${port}` });
    expect(name).to.equal('StartupError');
    expect(message).to.include('needs model.onnx and vocab/words.txt');
    expect(message).to.include(
      `the Hugging Face hub (127.0.0.1:${port}): 127.0.0.1:${port} can't be reached`,
    );
    expect(nextStep).to.include(folder.cached('model.onnx'));
    expect(nextStep).to.include(`300000 bytes, sha256 ${etagOf(folder.files['model.onnx']).slice(1, -1)}`);
    for (const [file, content] of Object.entries(folder.files))
      await folder.write(folder.cached(file), content);
    await folder.prepare({ HF_ENDPOINT: `http://127.0.0.1:${port}` });
  });

  it('refuses an endpoint that is no address, or that holds a password, without repeating it', async () => {
    for (const endpoint of ['nonsense', 'http://user:hunter2@127.0.0.1:9']) {
      const { message } = await folder.refusal({ HF_ENDPOINT: endpoint });
      expect(message).to.include('HF_ENDPOINT');
      expect(message).not.to.include('hunter2');
    }
  });
});
