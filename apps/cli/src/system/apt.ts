import { execFile } from 'node:child_process';
import { access, chmod, rm, writeFile } from 'node:fs/promises';
import { platform, userInfo } from 'node:os';
import { promisify } from 'node:util';
import { StartupError } from '@millrace/shared';
import { firstOnPath } from './on-path.js';

const run = promisify(execFile);

/** Debian asks this script whether a package may start its service; 101 means no. */
const POLICY_FILE = '/usr/sbin/policy-rc.d';
const POLICY_NO = '#!/bin/sh\nexit 101\n';

/** Another apt may be at work (unattended upgrades): wait for it rather than fail. */
const WAIT_FOR_LOCK = ['-o', 'DPkg::Lock::Timeout=300'];

/** Whether packages can be installed without asking anybody. */
export async function isDebianAsRoot(): Promise<boolean> {
  if (platform() !== 'linux' || userInfo().uid !== 0) return false;
  const debian = await access('/etc/debian_version').then(
    () => true,
    () => false,
  );
  return debian && (await firstOnPath(['apt-get'])) !== undefined;
}

/**
 * Installs a Debian package without starting or enabling its service: Millrace runs a server of its own,
 * and a person who wanted the distribution's would have installed it.
 * @param orElse what a person can do instead, for the error: `or set REDIS_URL`.
 * @throws StartupError
 */
export async function installByApt(name: string, orElse?: string): Promise<void> {
  const removePolicy = await forbidServices();
  try {
    await apt('update', '-qq');
    await apt('install', '-y', '-qq', '--no-install-recommends', name);
  } catch (cause) {
    const { stderr } = cause as { stderr?: string };
    const reason = stderr?.trim().split('\n').at(-1) ?? String(cause);
    const byHand = `Run \`apt-get update && apt-get install ${name}\` to see why`;
    throw new StartupError(
      `Installing ${name} failed: ${reason}`,
      orElse ? `${byHand}, ${orElse}.` : `${byHand}.`,
      { cause },
    );
  } finally {
    await removePolicy();
  }
  // The package enables its service for the next boot. Where there is no systemd there is nothing to undo.
  await run('systemctl', ['disable', '--quiet', name]).catch(() => undefined);
}

/** Leaves an existing policy alone: it belongs to whoever set up the machine. */
async function forbidServices(): Promise<() => Promise<void>> {
  try {
    await writeFile(POLICY_FILE, POLICY_NO, { flag: 'wx' });
  } catch {
    return async () => undefined;
  }
  await chmod(POLICY_FILE, 0o755);
  return () => rm(POLICY_FILE, { force: true });
}

async function apt(...args: string[]): Promise<void> {
  await run('env', ['DEBIAN_FRONTEND=noninteractive', 'apt-get', ...WAIT_FOR_LOCK, ...args], {
    maxBuffer: 64 * 1024 * 1024,
  });
}
