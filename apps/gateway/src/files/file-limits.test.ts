import { expect } from 'chai';
import { keysOf, newOwner, OpenedFiles } from '../test-support/opened-files.js';
import { codeOf } from '../test-support/store-conformance.js';
import { type FileRecord, newFileId } from './file-record.js';

const MIB = 1024 * 1024;

describe('files have limits:', () => {
  const opened = new OpenedFiles();
  const { clock, create, open, untilPast } = opened;
  before(() => opened.start());
  after(() => opened.stop());

  it('one file its bytes', async () => {
    const own = open({ maxFileBytes: MIB });
    const whose = newOwner();
    expect(await codeOf(create(whose, Buffer.alloc(MIB + 1), {}, own))).to.equal('body_too_large');
    expect(await keysOf(own)).to.deep.equal([]);
    expect((await create(whose, Buffer.alloc(MIB), {}, own)).bytes).to.equal(MIB);
  });

  it('one key its bytes, also of files that are being sent at the same time', async () => {
    const own = open({ maxFileBytesPerKey: 10 * MIB });
    const whose = newOwner();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 5 }, () => create(whose, Buffer.alloc(4 * MIB), {}, own)),
    );
    const kept = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
    const refused = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? (outcome.reason as { code: string }).code : [],
    );
    expect(kept.length).to.be.within(0, 2);
    expect(new Set(refused)).to.deep.equal(new Set(['file_limit']));
    expect(await keysOf(own)).to.have.length(kept.length);
    for (const { id } of kept) await own.remove(id, whose);
    // What was refused counts for nothing: there is room for all of it.
    const second = await create(whose, Buffer.alloc(10 * MIB), {}, own);
    expect(await codeOf(create(whose, 'a', {}, own))).to.equal('file_limit');
    await own.remove(second.id, whose);
    await create(whose, 'a', {}, own);
    await create(newOwner(), Buffer.alloc(10 * MIB), {}, own);
  });

  it('one key its files, empty ones too', async () => {
    const own = open({ maxFilesPerKey: 2 });
    const whose = newOwner();
    const first = await create(whose, '', {}, own);
    await create(whose, '', {}, own);
    const refusal = await create(whose, '', {}, own).catch((error: unknown) => error);
    expect(refusal).to.have.nested.property('code', 'file_limit');
    expect(refusal).to.have.nested.property('details.retryAfterSeconds').that.is.above(0);
    await own.remove(first.id, whose);
    await create(whose, '', {}, own);
  });

  it('but what a batch writes is never refused, and counts', async () => {
    const own = open({ maxFileBytesPerKey: MIB });
    const whose = newOwner();
    const record = await create(whose, Buffer.alloc(MIB), {}, own);
    const output: FileRecord = { ...record, id: newFileId(), purpose: 'batch_output' };
    await own.adopt(output);
    await own.adopt({ ...output, bytes: 5 });
    expect((await own.get(output.id, whose)).bytes).to.equal(5);
    await own.remove(record.id, whose);
    expect(await codeOf(create(whose, Buffer.alloc(MIB), {}, own))).to.equal('file_limit');
    await create(whose, Buffer.alloc(MIB - 5), {}, own);
  });

  it('whose time is over count no longer', async () => {
    const own = open({ maxFilesPerKey: 1 });
    const whose = newOwner();
    const { expiresAt } = await create(whose, 'a', { expiresAt: clock.now() + 50 }, own);
    await untilPast(expiresAt);
    await create(whose, 'b', {}, own);
  });
});
