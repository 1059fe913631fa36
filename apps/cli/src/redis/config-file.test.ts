import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { defaultMaxmemory, keptPassword, renderConfig } from './config-file.js';

const GIB = 1024 ** 3;

describe('the configuration of a private Redis', () => {
  it('takes a quarter of the memory, within bounds', () => {
    expect(defaultMaxmemory(8 * GIB)).to.equal('2048mb');
    expect(defaultMaxmemory(GIB / 2)).to.equal('256mb');
    expect(defaultMaxmemory(256 * GIB)).to.equal('4096mb');
  });

  it('quotes paths, and allows DEBUG only when asked', () => {
    const config = {
      socket: '/a "b"/c\\d/redis.sock',
      password: 'secret',
      dir: '/data',
      logFile: '/data/redis.log',
      maxmemory: '1gb',
      appendfsync: 'everysec',
      enableDebug: false,
    } as const;
    expect(renderConfig(config)).to.contain('unixsocket "/a \\"b\\"/c\\\\d/redis.sock"');
    expect(renderConfig(config)).not.to.contain('enable-debug-command');
    expect(renderConfig({ ...config, enableDebug: true })).to.contain('enable-debug-command local');
  });

  it('makes a password once per folder', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'millrace-password-'));
    const first = await keptPassword(dir, 'password');
    expect(await keptPassword(dir, 'password')).to.equal(first);
    expect(await keptPassword(dir, 'other')).not.to.equal(first);
    await rm(dir, { recursive: true });
  });
});
