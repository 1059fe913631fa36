import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import { Harness } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { uniqueName } from '../test-support/redis.js';

function ask(socketPath: string, path: string, body?: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const method = body === undefined ? 'GET' : 'POST';
    const asked = request({ socketPath, path, method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.on('error', reject).end(body);
  });
}

async function refusal(start: Promise<unknown>): Promise<StartupError> {
  try {
    await start;
  } catch (error) {
    if (error instanceof StartupError) return error;
    throw error;
  }
  throw new Error('It started.');
}

describe('a unix socket', () => {
  const harness = new Harness();
  const folder = mkdtempSync(join(tmpdir(), 'millrace-socket-'));
  const model = uniqueName('socket');
  before(() => harness.worker(textModel(model)));
  after(async () => {
    await harness.release();
    rmSync(folder, { recursive: true });
  });

  it('is served as the port is, for those who may write to it, and goes with the gateway', async () => {
    const socketPath = join(folder, 'served');
    const gateway = await harness.gateway({ socketPath });
    expect(statSync(socketPath).mode & 0o777).to.equal(0o660);
    const { status, text } = await ask(socketPath, `/v1/models/${model}/predict`, '{"inputs":"a"}');
    expect(status).to.equal(200);
    expect(JSON.parse(text)).to.have.property('outputs');
    expect((await fetch(`${gateway.url}/v2/health/live`)).status).to.equal(200);
    await gateway.close();
    expect(existsSync(socketPath)).to.equal(false);
  });

  it('has the permissions that are set', async () => {
    const socketPath = join(folder, 'open');
    await harness.gateway({ socketPath, socketMode: '666' });
    expect(statSync(socketPath).mode & 0o777).to.equal(0o666);
  });

  it('has the same limits', async () => {
    const socketPath = join(folder, 'limited');
    const gateway = await harness.gateway({ socketPath, maxConnections: 1, requestTimeoutMs: 500 });
    const first = await fetch(`${gateway.url}/v2/health/live`);
    await first.text();
    expect((await ask(socketPath, '/v2/health/live')).status).to.equal(503);
  });

  it('that another process serves is not taken from it', async () => {
    const socketPath = join(folder, 'taken');
    await harness.gateway({ socketPath });
    const error = await refusal(harness.gateway({ socketPath }));
    expect(error.message).to.include(socketPath).and.include('another process listens there');
    expect((await ask(socketPath, '/v2/health/live')).status).to.equal(200);
  });

  it('that a dead process left is replaced', async () => {
    const socketPath = join(folder, 'stale');
    const listen = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', listen, socketPath]);
    expect(existsSync(socketPath), 'its file is left').to.equal(true);
    await harness.gateway({ socketPath });
    expect((await ask(socketPath, '/v2/health/live')).status).to.equal(200);
  });

  it('is no file that is something else', async () => {
    const socketPath = join(folder, 'file');
    writeFileSync(socketPath, 'kept');
    const error = await refusal(harness.gateway({ socketPath }));
    expect(error.message).to.include('no socket');
    expect(existsSync(socketPath)).to.equal(true);
  });

  it('must have a path that the kernel takes', async () => {
    const tooLong = await refusal(harness.gateway({ socketPath: join(folder, 'x'.repeat(100)) }));
    expect(tooLong.message).to.include('103 bytes');
    const nowhere = await refusal(harness.gateway({ socketPath: join(folder, 'no', 'where') }));
    expect(nowhere).to.be.instanceOf(StartupError);
  });
});
