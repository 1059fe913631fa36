import { expect } from 'chai';
import { newOwner, OpenedFiles } from '../test-support/opened-files.js';
import { codeOf } from '../test-support/store-conformance.js';
import { newFileId } from './file-record.js';

describe('files in a list', () => {
  const opened = new OpenedFiles();
  const { create } = opened;
  before(() => opened.start());
  after(() => opened.stop());

  it('come in order, page by page, also behind one that was deleted meanwhile', async () => {
    const whose = newOwner();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await create(whose, `${i}`)).id);
    // Those of one millisecond are in the order of their ids.
    const all = await opened.files.list(whose, { limit: 10, order: 'asc' });
    expect(all.records.map(({ id }) => id)).to.have.members(ids);
    expect(all.hasMore).to.equal(false);
    const asc = all.records.map(({ id }) => id);
    for (const order of ['asc', 'desc'] as const) {
      const expected = order === 'asc' ? asc : [...asc].reverse();
      const seen: string[] = [];
      let more = true;
      while (more) {
        const page = await opened.files.list(whose, { limit: 2, order, after: seen.at(-1) });
        seen.push(...page.records.map(({ id }) => id));
        more = page.hasMore;
      }
      expect(seen).to.deep.equal(expected);
    }
    await opened.files.remove(asc[1] ?? '', whose);
    const behind = await opened.files.list(whose, { limit: 10, order: 'asc', after: asc[1] });
    expect(behind.records.map(({ id }) => id)).to.deep.equal(asc.slice(2));
    expect(await codeOf(opened.files.list(whose, { limit: 10, order: 'asc', after: newFileId() }))).to.equal(
      'invalid_input',
    );
  });

  it('are those of a purpose, however many others there are', async () => {
    const whose = newOwner();
    const record = await create(whose, 'a');
    const output = { ...record, id: newFileId(), purpose: 'batch_output' } as const;
    await opened.files.adopt({ ...output, createdAt: record.createdAt - 1000 });
    for (let i = 0; i < 120; i++) await opened.files.adopt({ ...record, id: newFileId() });
    const { records, hasMore } = await opened.files.list(whose, {
      limit: 1,
      order: 'desc',
      purpose: 'batch_output',
    });
    expect(records.map(({ id }) => id)).to.deep.equal([output.id]);
    expect(hasMore).to.equal(false);
    const others = await opened.files.list(whose, { limit: 100, order: 'desc', purpose: 'batch' });
    expect(others.records).to.have.length(100);
    expect(others.hasMore).to.equal(true);
  });
});
