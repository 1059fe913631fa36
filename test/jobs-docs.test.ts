import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Cluster } from './support/cluster.js';
import { MINILM } from './support/minilm.js';

const run = promisify(execFile);

/** The shell commands of docs/jobs.md, in order. */
async function commands(): Promise<string[]> {
  const text = await readFile(new URL('../../docs/jobs.md', import.meta.url), 'utf8');
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, command = '']) => command);
}

describe('docs/jobs.md', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start({ models: [MINILM], workers: 1 });
  });
  after(() => cluster.stop());

  it('has commands that do what it says', async () => {
    let job = '';
    const sh = async (command: string): Promise<string> => {
      const env = { ...process.env, MILLRACE_URL: cluster.url, JOB: job };
      return (await run('sh', ['-c', command], { env, maxBuffer: 2 ** 24 })).stdout;
    };
    const [send, collect, result, events, list, cancel, ...more] = await commands();
    expect(more).to.deep.equal([]);
    const sent = await sh(send ?? '');
    expect(sent).to.match(/^HTTP\/1.1 202 /);
    expect(sent).to.match(/^preference-applied: respond-async\r$/im);
    job = /^location: \/v1\/jobs\/(\S+)\r$/im.exec(sent)?.[1] ?? '';
    const done = JSON.parse(await sh(collect ?? '')) as { state: string; result: { outputs: number[][] } };
    expect(done.state).to.equal('done');
    expect(done.result.outputs.map((vector) => vector.length)).to.deep.equal([384, 384]);
    expect(JSON.parse(await sh(result ?? ''))).to.deep.equal(done.result);
    expect(await sh(events ?? '')).to.match(/^event: done$/m);
    const { data } = JSON.parse(await sh(list ?? '')) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).to.include(job);
    expect(JSON.parse(await sh(cancel ?? ''))).to.include({ status: 409, code: 'job_ended' });
  });
});
