import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SessionOptions } from '@millrace/shared';
import { expect } from 'chai';
import { TuningStore } from './tuning-store.js';

const KEY = { modelSha256: 'ab'.repeat(32), onnxruntimeVersion: '1.30.0', device: 'cpu' };
const MANIFEST: SessionOptions = {
  threads: 0,
  intraOpThreads: 1,
  allowSpinning: false,
  graphOptimizationLevel: 'all',
  disabledOptimizers: [],
};
const CHOICE: SessionOptions = { ...MANIFEST, threads: 1, disabledOptimizers: ['SkipLayerNormFusion'] };

describe('the store of tuned session options', () => {
  let folder: string;
  let store: TuningStore;
  let said: string[];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-tuning-'));
    said = [];
    store = new TuningStore(folder, { warn: (_: unknown, line?: string) => said.push(line ?? '') });
  });
  afterEach(() => rm(folder, { recursive: true }));

  const change = async (edit: (stored: Record<string, unknown>) => void): Promise<void> => {
    const stored = JSON.parse(await readFile(store.path(KEY), 'utf8'));
    edit(stored);
    await writeFile(store.path(KEY), JSON.stringify(stored));
  };

  it('gives back what it was given, and its report lies beside it', async () => {
    await store.write(KEY, CHOICE, MANIFEST, { trials: [] });
    expect(await store.read(KEY, MANIFEST)).to.deep.equal(CHOICE);
    expect(JSON.parse(await readFile(store.reportPath(KEY), 'utf8'))).to.deep.include({ trials: [] });
    expect(said).to.deep.equal([]);
  });

  it('has nothing for another model, runtime or device, and says nothing', async () => {
    await store.write(KEY, CHOICE, MANIFEST);
    for (const other of [
      { modelSha256: 'cd'.repeat(32) },
      { onnxruntimeVersion: '1.31.0' },
      { device: 'cuda' },
    ]) {
      expect(await store.read({ ...KEY, ...other }, MANIFEST)).to.equal(undefined);
    }
    expect(said).to.deep.equal([]);
  });

  it('refuses a choice from another machine, loudly', async () => {
    await store.write(KEY, CHOICE, MANIFEST);
    await change((stored) => {
      stored.machine = 'Another CPU x64, 96 cores';
    });
    expect(await store.read(KEY, MANIFEST)).to.equal(undefined);
    expect(said).to.have.length(1);
    expect(said[0]).to.include('another machine (Another CPU x64, 96 cores)');
  });

  it('refuses a broken file, and one with options that there are not', async () => {
    await store.write(KEY, CHOICE, MANIFEST);
    await change((stored) => {
      stored.session = { ...CHOICE, graphOptimizationLevel: 'most' };
    });
    expect(await store.read(KEY, MANIFEST)).to.equal(undefined);
    await writeFile(store.path(KEY), '{"machine": "');
    expect(await store.read(KEY, MANIFEST)).to.equal(undefined);
    expect(said).to.have.length(2);
    for (const line of said) expect(line).to.include('is broken');
  });

  it('does not overrule what a person has changed in the manifest since', async () => {
    await store.write(KEY, CHOICE, MANIFEST);
    expect(await store.read(KEY, { ...MANIFEST, threads: 2 })).to.equal(undefined);
    expect(said[0]).to.include('other session options in model.yaml');
  });
});
