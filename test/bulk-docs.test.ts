import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Cluster } from './support/cluster.js';

const run = promisify(execFile);

/** The shell commands of docs/bulk.md, in order. */
async function commands(): Promise<string[]> {
  const text = await readFile(new URL('../../docs/bulk.md', import.meta.url), 'utf8');
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, command = '']) => command);
}

describe('docs/bulk.md', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start({ models: ['identity'] });
  });
  after(() => cluster?.stop());

  it('has commands that do what it says', async () => {
    let file = '';
    const sh = async (command = ''): Promise<string> => {
      const env = { ...process.env, MILLRACE_URL: cluster.url, FILE: file };
      return (await run('sh', ['-c', command], { env, maxBuffer: 2 ** 24 })).stdout;
    };
    const [send, look, list, content, remove, ...more] = await commands();
    expect(more).to.deep.equal([]);
    const sent = JSON.parse(await sh(send)) as { id: string; bytes: number };
    expect(sent).to.include({ object: 'file', filename: 'lines.jsonl', purpose: 'batch', bytes: 269 });
    file = sent.id;
    expect(JSON.parse(await sh(look))).to.deep.equal(sent);
    expect(JSON.parse(await sh(list))).to.deep.include({ data: [sent], has_more: false });
    expect(await sh(content)).to.equal('{"custom_id": "1"');
    expect(JSON.parse(await sh(remove))).to.deep.equal({ id: file, object: 'file', deleted: true });
  });
});
