import { chmod, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ensureRedisServer } from '@millrace/cli';

/**
 * Has `start` find a redis-server that outlives its limit on the size of files. The system's own would be ended
 * by SIGXFSZ at the first write past it; this one gets an error from the write, as from a full disk. `folder`
 * must last as long as that Redis is started again.
 */
export async function withPatientRedis<T>(folder: string, start: () => Promise<T>): Promise<T> {
  const server = await ensureRedisServer(() => undefined);
  const script = join(folder, basename(server));
  await writeFile(script, `#!/bin/sh\ntrap '' XFSZ\nexec '${server}' "$@"\n`);
  await chmod(script, 0o755);
  const path = process.env.PATH;
  process.env.PATH = `${folder}:${path}`;
  try {
    return await start();
  } finally {
    process.env.PATH = path;
  }
}
