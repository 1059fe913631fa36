import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { mountSmallDisk } from '../test-support/small-disk.js';
import { codeOf, listed, pieces, storeConformance } from '../test-support/store-conformance.js';
import { LocalStore } from './local-store.js';

const MIB = 1024 * 1024;

describe('files in a folder', () => {
  let folder: string;
  let store: LocalStore;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-files-'));
    store = new LocalStore(join(folder, 'made', 'when-needed'));
  });
  after(() => rm(folder, { recursive: true }));

  storeConformance(() => store);

  it('can be read by nobody else, and leave no empty folders', async () => {
    const root = join(folder, 'modes');
    const own = new LocalStore(root);
    await own.put('files/file-1/a', pieces(Buffer.from('a')));
    expect((await stat(join(root, 'files/file-1/a'))).mode & 0o777).to.equal(0o600);
    expect((await stat(join(root, 'files/file-1'))).mode & 0o777).to.equal(0o700);
    await own.remove(['files/file-1/a']);
    expect(await readdir(root)).to.deep.equal([]);
  });

  it('go on where the folders of others are removed all the time', async () => {
    const keys = Array.from({ length: 100 }, (_, i) => `files/same/${i}`);
    await Promise.all(
      keys.map(async (key) => {
        await store.put(key, pieces(Buffer.from(key)));
        await store.remove([key]);
      }),
    );
    expect(await listed(store, 'files/same')).to.deep.equal([]);
  });

  it('sweep away what a process that died has left half written, and nothing younger', async () => {
    const root = join(folder, 'leftovers');
    const at = join(root, 'files', 'file-1');
    await mkdir(at, { recursive: true });
    const [dead, alive] = [join(at, '.000000.dead.tmp'), join(at, '.000000.alive.tmp')] as const;
    await writeFile(dead, 'half');
    await writeFile(alive, 'half');
    const longAgo = new Date(Date.now() - 2 * 3600_000);
    await utimes(dead, longAgo, longAgo);
    expect(await listed(new LocalStore(root))).to.deep.equal([]);
    expect(await readdir(at)).to.deep.equal(['.000000.alive.tmp']);
  });

  it('are not swept away while they are written, whatever the clock of a process says', async () => {
    const { now } = Date;
    async function* slowly(): AsyncGenerator<Buffer> {
      yield Buffer.from('first');
      Date.now = () => now() + 24 * 3600_000;
      try {
        await listed(store, 'files/slow/');
      } finally {
        Date.now = now;
      }
      yield Buffer.from('last');
    }
    expect(await store.put('files/slow/a', slowly())).to.equal(9);
    await store.remove(['files/slow/a']);
  });

  it('are unavailable where their folder is none', async () => {
    await writeFile(join(folder, 'a-file'), '');
    const none = new LocalStore(join(folder, 'a-file'));
    expect(await codeOf(none.put('files/a/b', pieces(Buffer.from('x'))))).to.equal('storage_unavailable');
    expect(await codeOf(none.read('files/a/b'))).to.equal('file_not_found');
  });

  it('tell that there is no room, and leave nothing behind', async () => {
    const root = join(folder, 'full');
    // The kernel's own device that is always full, in place of a new file.
    const full = new LocalStore(root, { begin: () => open('/dev/full', constants.O_WRONLY) });
    expect(await codeOf(full.put('files/a/b', pieces(Buffer.from('x'))))).to.equal('storage_full');
    expect(await readdir(root)).to.deep.equal([]);
  });

  it('tell that a real file system is full, and go on when there is room again', async function () {
    const root = join(folder, 'small');
    const takeAway = mountSmallDisk(root, 2);
    if (!takeAway) this.skip();
    try {
      const small = new LocalStore(root);
      await small.put('files/a/kept', pieces(Buffer.alloc(MIB, 'a')));
      expect(await codeOf(small.put('files/a/b', pieces(Buffer.alloc(2 * MIB))))).to.equal('storage_full');
      expect((await listed(small)).map(({ key }) => key)).to.deep.equal(['files/a/kept']);
      await small.put('files/a/c', pieces(Buffer.alloc(MIB / 2)));
    } finally {
      takeAway();
    }
  });
});
