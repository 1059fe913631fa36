import { open, readFile, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { HubServer } from './testing/hub-server.js';
import { ModelFolder } from './testing/model-folder.js';

describe('files on this machine', function () {
  // Real sockets on a machine that may be busy.
  this.timeout(60_000);
  let hub: HubServer;
  let folder: ModelFolder;
  let env: NodeJS.ProcessEnv;

  beforeEach(async () => {
    hub = new HubServer();
    await hub.start();
    folder = await ModelFolder.make([{ hub: { repo: 'org/model', revision: 'main' } }]);
    env = { HF_ENDPOINT: hub.endpoint };
    for (const [name, content] of Object.entries(folder.files))
      hub.files.set(`org/model/main/${name}`, content);
  });
  afterEach(async () => {
    await hub.stop();
    await folder.remove();
  });

  const fetched = () => hub.storeRequests().map(({ path }) => path.replace('org/model/main/', ''));

  it('are fetched again when truncated', async () => {
    await folder.prepare(env);
    await truncate(folder.cached('model.onnx'), 1000);
    await folder.prepare(env);
    expect(fetched()).to.deep.equal(['model.onnx', 'vocab/words.txt', 'model.onnx']);
    expect(await readFile(folder.cached('model.onnx'))).to.deep.equal(folder.files['model.onnx']);
  });

  it('are fetched again when one byte changed, even if the times were set back', async () => {
    await folder.prepare(env);
    const path = folder.cached('model.onnx');
    const { atime, mtime } = await stat(path);
    const handle = await open(path, 'r+');
    await handle.write(Buffer.from([(folder.files['model.onnx'][5000] ?? 0) ^ 1]), 0, 1, 5000);
    await handle.close();
    await utimes(path, atime, mtime);
    await folder.prepare(env);
    expect(fetched()).to.deep.equal(['model.onnx', 'vocab/words.txt', 'model.onnx']);
    expect(await readFile(path)).to.deep.equal(folder.files['model.onnx']);
  });

  it('are hashed, not fetched, when only their times changed', async () => {
    await folder.prepare(env);
    await utimes(folder.cached('model.onnx'), 1, 1);
    await folder.prepare(env);
    expect(fetched()).to.have.length(2);
  });

  it('are named with their fault when they are wrong and nothing else can be had', async () => {
    await folder.prepare(env);
    await truncate(folder.cached('model.onnx'), 1000);
    const { message, nextStep } = await folder.refusal({ HF_HUB_OFFLINE: 'yes' });
    expect(message).to.include(`${folder.cached('model.onnx')} has 1000 bytes instead of 300000`);
    expect(message).to.include('HF_HUB_OFFLINE is set');
    expect(nextStep).not.to.include('words.txt');
  });

  it('are used from beside the manifest', async () => {
    for (const [name, content] of Object.entries(folder.files))
      await folder.write(folder.beside(name), content);
    const prepared = await folder.prepare(env);
    expect(prepared.modelFile).to.equal(folder.beside('model.onnx'));
    expect(hub.seen).to.deep.equal([]);
  });

  it('are used from where a person placed them in the cache', async () => {
    for (const [name, content] of Object.entries(folder.files))
      await folder.write(folder.cached(name), content);
    expect((await folder.prepare(env)).modelFile).to.equal(folder.cached('model.onnx'));
    expect(hub.seen).to.deep.equal([]);
  });

  it('are fetched once by several that need them at the same time', async () => {
    const prepared = await Promise.all([folder.prepare(env), folder.prepare(env), folder.prepare(env)]);
    expect(new Set(prepared.map(({ modelSha256 }) => modelSha256)).size).to.equal(1);
    expect(fetched()).to.have.members(['model.onnx', 'vocab/words.txt']);
  });

  it('are fetched past the lock of a process that died', async () => {
    const lock = folder.cached('.work/lock');
    await folder.write(lock, 'whoever');
    await utimes(lock, 1, 1);
    await folder.prepare(env);
    expect(fetched()).to.have.length(2);
  });

  it('are refused with a next step when the cache can not be written', async () => {
    const blocked = join(folder.root, 'blocked');
    await writeFile(blocked, '');
    const { name, message, nextStep } = await folder.refusal(env, { cacheDir: blocked });
    expect(name).to.equal('StartupError');
    expect(message).to.include(`The model cache ${join(blocked, 'sample')} can't be written`);
    expect(nextStep).to.include('MILLRACE_CACHE_DIR');
  });
});
