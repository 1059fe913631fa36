import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { readLines, vectorOf } from './support/batch-lines.js';
import { Cluster } from './support/cluster.js';
import { cosine, INT8_TOLERANCE, KNOWN_COSINES, MINILM } from './support/minilm.js';

const run = promisify(execFile);

/** The shell commands of docs/bulk.md, in order. */
async function commands(): Promise<string[]> {
  const text = await readFile(new URL('../../docs/bulk.md', import.meta.url), 'utf8');
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, command = '']) => command);
}

describe('docs/bulk.md', function () {
  this.timeout(120_000);
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start({ models: [MINILM] });
  });
  after(() => cluster?.stop());

  it('has commands that do what it says', async () => {
    const ids = { FILE: '', BATCH: '', OUTPUT: '' };
    const sh = async (command = ''): Promise<string> => {
      const env = { ...process.env, MILLRACE_URL: cluster.url, ...ids };
      return (await run('sh', ['-c', command], { env, maxBuffer: 2 ** 24 })).stdout;
    };
    const [send, look, list, content, remove, ...ofBatches] = await commands();
    const sent = JSON.parse(await sh(send)) as { id: string; bytes: number };
    expect(sent).to.include({ object: 'file', filename: 'lines.jsonl', purpose: 'batch', bytes: 269 });
    ids.FILE = sent.id;
    expect(JSON.parse(await sh(look))).to.deep.equal(sent);
    expect(JSON.parse(await sh(list))).to.deep.include({ data: [sent], has_more: false });
    expect(await sh(content)).to.equal('{"custom_id": "1"');
    expect(JSON.parse(await sh(remove))).to.deep.equal({ id: ids.FILE, object: 'file', deleted: true });

    const [make, see, answers, pause, resume, cancel, batches, ...more] = ofBatches;
    expect(more).to.deep.equal([]);
    ids.FILE = (JSON.parse(await sh(send)) as { id: string }).id;
    const stateAfter = async (command = ''): Promise<BatchBody> => JSON.parse(await sh(command)) as BatchBody;
    ids.BATCH = (await stateAfter(make)).id;
    let batch = await stateAfter(see);
    while (batch.status !== 'completed') batch = await stateAfter(see);
    expect(batch).to.deep.include({
      error_file_id: null,
      request_counts: { total: 2, completed: 2, failed: 0 },
    });
    ids.OUTPUT = batch.output_file_id ?? '';
    const [person = [], dog = []] = readLines(await sh(answers)).map(vectorOf);
    expect(cosine(person, dog)).to.be.closeTo(KNOWN_COSINES[0].cosine, INT8_TOLERANCE);

    // Nothing is answered meanwhile, so that there is something to hold.
    for (const worker of cluster.workers) worker.kill('SIGSTOP');
    ids.BATCH = (await stateAfter(make)).id;
    expect((await stateAfter(pause)).status).to.equal('paused');
    expect((await stateAfter(resume)).status).to.be.oneOf(['validating', 'in_progress']);
    expect((await stateAfter(cancel)).status).to.be.oneOf(['cancelling', 'cancelled']);
    const { data } = JSON.parse(await sh(batches)) as { data: BatchBody[] };
    expect(data.map(({ id }) => id)).to.include(ids.BATCH);
  });
});

interface BatchBody {
  id: string;
  status: string;
  output_file_id: string | null;
}
