import { readdir, readFile, readlink } from 'node:fs/promises';

const LISTEN = '0A';

/** Addresses that processes listen on over TCP, as Linux tells them: hex, `0100007F:1F90` is 127.0.0.1:8080. */
export async function listeners(pids: readonly number[]): Promise<string[]> {
  const inodes = new Set((await Promise.all(pids.map(socketsOf))).flat());
  const found: string[] = [];
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const [, ...rows] = (await readFile(table, 'utf8').catch(() => '')).trim().split('\n');
    for (const row of rows) {
      const columns = row.trim().split(/\s+/);
      if (columns[3] === LISTEN && inodes.has(columns[9] ?? '')) found.push(columns[1] ?? '');
    }
  }
  return found;
}

/** Inodes of a process's sockets. */
async function socketsOf(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`;
  const files = await readdir(folder).catch(() => []);
  const links = await Promise.all(files.map((file) => readlink(`${folder}/${file}`).catch(() => '')));
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
}
