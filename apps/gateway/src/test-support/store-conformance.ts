import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { MillraceError } from '@millrace/shared';
import { expect } from 'chai';
import type { FileStore, StoredObject } from '../files/store.js';

const MIB = 1024 * 1024;

/** Content in pieces of `piece` bytes. */
export async function* pieces(bytes: Uint8Array, piece = 60_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += piece) yield bytes.subarray(at, at + piece);
}

/** The code of the error that a promise ends with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => 'no error',
    (error: MillraceError) => error.code ?? String(error),
  );
}

export async function listed(store: FileStore, prefix = ''): Promise<StoredObject[]> {
  const objects: StoredObject[] = [];
  for await (const object of store.list(prefix)) objects.push(object);
  return objects;
}

/** What every storage of files must do. `store` gives one that is empty. */
export function storeConformance(store: () => FileStore): void {
  const put = (key: string, text: string): Promise<number> => store().put(key, pieces(Buffer.from(text)));
  const keys = async (prefix: string): Promise<string[]> =>
    (await listed(store(), prefix)).map(({ key }) => key).sort();
  const read = async (key: string, start?: number, end?: number): Promise<string> =>
    (await buffer(await store().read(key, start, end))).toString('latin1');

  for (const [what, bytes] of [
    ['nothing', 0],
    ['a byte', 1],
    ['less than a part', 3 * MIB + 1],
    ['several parts', 20 * MIB + 7],
  ] as const) {
    it(`gives back what was put: ${what}`, async () => {
      const content = randomBytes(bytes);
      const key = `files/sizes/${bytes}`;
      expect(await store().put(key, pieces(content))).to.equal(bytes);
      const back = await buffer(await store().read(key));
      expect(back.equals(content)).to.equal(true);
      await store().remove([key]);
    });
  }

  it('takes pieces of any size, none among them', async () => {
    async function* content(): AsyncGenerator<Uint8Array> {
      for (const piece of ['', 'a', '', '', 'bc', '']) yield Buffer.from(piece);
    }
    expect(await store().put('files/pieces/a', content())).to.equal(3);
    expect(await read('files/pieces/a')).to.equal('abc');
    await store().remove(['files/pieces/a']);
  });

  it('reads ranges', async () => {
    await put('files/ranges/a', '0123456789');
    for (const [start, end, expected] of [
      [0, undefined, '0123456789'],
      [3, undefined, '3456789'],
      [0, 4, '0123'],
      [3, 7, '3456'],
      [9, 10, '9'],
      [8, 99, '89'],
      [4, 4, ''],
      [10, undefined, ''],
      [50, 60, ''],
    ] as const) {
      expect(await read('files/ranges/a', start, end), `${start} to ${end}`).to.equal(expected);
    }
    await store().remove(['files/ranges/a']);
  });

  it('says of what is not there that it is not, and removes it without a word', async () => {
    expect(await codeOf(store().read('files/none/a'))).to.equal('file_not_found');
    expect(await codeOf(store().read('files/none/a', 2, 2))).to.equal('file_not_found');
    await put('files/once/a', 'a');
    await store().remove(['files/once/a', 'files/once/b', 'files/nowhere/a']);
    await store().remove(['files/once/a']);
    await store().remove([]);
    expect(await codeOf(store().read('files/once/a'))).to.equal('file_not_found');
    expect(await keys('files/once')).to.deep.equal([]);
  });

  it('shows nothing of an object before all of it is there', async () => {
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let begun: () => void = () => undefined;
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    async function* content(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(9 * MIB, 'a');
      begun();
      await held;
      yield Buffer.from('b');
    }
    const putting = store().put('files/slow/a', content());
    await hasBegun;
    expect(await keys('files/slow')).to.deep.equal([]);
    expect(await codeOf(store().read('files/slow/a'))).to.equal('file_not_found');
    letGo();
    expect(await putting).to.equal(9 * MIB + 1);
    expect(await keys('files/slow')).to.deep.equal(['files/slow/a']);
    await store().remove(['files/slow/a']);
  });

  for (const [when, bytes] of [
    ['at once', 0],
    ['in the first part', 10],
    ['after several parts', 20 * MIB],
  ] as const) {
    it(`leaves nothing of content that fails ${when}, and throws what it threw`, async () => {
      const fault = new Error('the client went away');
      async function* content(): AsyncGenerator<Uint8Array> {
        yield* pieces(Buffer.alloc(bytes));
        throw fault;
      }
      const thrown = await store()
        .put('files/broken/a', content())
        .catch((error: unknown) => error);
      expect(thrown).to.equal(fault);
      expect(await keys('files/broken')).to.deep.equal([]);
      expect(await codeOf(store().read('files/broken/a'))).to.equal('file_not_found');
    });
  }

  it('lists what begins with a prefix, which may end within a name', async () => {
    const all = ['files/list-1/a', 'files/list-1/b.c', 'files/list-2/deep/er/a', 'files/list-2/deep_a'];
    for (const key of all) await put(key, key);
    await put('other/list-1/a', '');
    const before = Date.now();
    expect(await keys('files/list-')).to.deep.equal([...all].sort());
    expect(await keys('files/list-1')).to.deep.equal(all.slice(0, 2));
    expect(await keys('files/list-1/b')).to.deep.equal(['files/list-1/b.c']);
    expect(await keys('files/list-2/deep')).to.deep.equal([...all.slice(2)].sort());
    expect(await keys('files/list-3')).to.deep.equal([]);
    for (const { key, bytes, modifiedAt } of await listed(store(), 'files/list-')) {
      expect(bytes).to.equal(key.length);
      expect(modifiedAt).to.be.within(before - 60_000, before + 60_000);
    }
    await store().remove([...all, 'other/list-1/a']);
  });

  it('removes many at once', async () => {
    const all = Array.from({ length: 25 }, (_, i) => `files/many/${String(i).padStart(6, '0')}`);
    // The stand-in for S3 trips over folders that others empty at the same time.
    await put('files/many/stays', '');
    await Promise.all(all.map((key) => put(key, 'x')));
    expect(await keys('files/many/0')).to.deep.equal(all);
    await store().remove(all);
    expect(await keys('files/many/')).to.deep.equal(['files/many/stays']);
    await store().remove(['files/many/stays']);
  });

  it('takes no key that leads elsewhere', async () => {
    for (const key of ['', '/a', '../a', 'a/../b', 'a//b', 'a/', '.a', 'a/.b', 'a\\b', 'a b', 'ä', 'a\0b']) {
      const outcomes = await Promise.all([
        put(key, 'x').then(
          () => 'put',
          () => 'refused',
        ),
        store()
          .read(key)
          .then(
            () => 'read',
            () => 'refused',
          ),
        store()
          .remove([key])
          .then(
            () => 'removed',
            () => 'refused',
          ),
      ]);
      expect(outcomes, JSON.stringify(key)).to.deep.equal(['refused', 'refused', 'refused']);
    }
  });
}
