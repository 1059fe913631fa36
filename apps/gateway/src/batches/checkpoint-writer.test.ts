import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { newFileId } from '../files/file-record.js';
import { LocalStore } from '../files/local-store.js';
import type { BatchRecord, Checkpoint } from './batch-record.js';
import { CheckpointWriter } from './checkpoint-writer.js';

describe('the checkpoints of a batch', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-checkpoints-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('name each object once, also where they are committed again because the answer was lost', async () => {
    let checkpoint: Checkpoint = { line: 0, end: 0, completed: 0, failed: 0, output: [], errors: [] };
    const batch = {
      checkpoint,
      outputFileId: newFileId(),
      errorFileId: newFileId(),
      epoch: 1,
    } as BatchRecord;
    const writer = new CheckpointWriter(batch, {
      store: new LocalStore(folder),
      commit: async (advance) => {
        for (let times = 0; times < 2; times++) checkpoint = advance(checkpoint);
      },
    });
    for (const number of [1, 2]) {
      writer.add({
        number,
        end: 10 * number,
        answer: { succeeded: true, text: ['{"line":', `${number}}\n`] },
      });
      writer.add({ number, end: 10 * number, answer: { succeeded: false, text: ['{}\n'] } });
      await writer.finish();
      expect(checkpoint).to.include({ line: number, end: 10 * number, completed: number, failed: number });
      expect(checkpoint.output.map(({ bytes }) => bytes)).to.deep.equal(Array(number).fill(11));
      expect(checkpoint.errors).to.have.length(number);
    }
  });
});
