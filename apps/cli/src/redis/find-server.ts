import { StartupError } from '@millrace/shared';
import { installByApt, isDebianAsRoot } from '../system/apt.js';
import { firstOnPath } from '../system/on-path.js';

/** In order of preference; both read the same configuration file. */
const SERVERS = ['redis-server', 'valkey-server'];

/** What a person types to get one, by the package manager that is there. */
const INSTALL_COMMANDS: [tool: string, command: string][] = [
  ['brew', 'brew install redis'],
  ['apt-get', 'sudo apt-get update && sudo apt-get install -y redis-server'],
  ['dnf', 'sudo dnf install -y valkey'],
  ['yum', 'sudo yum install -y redis'],
  ['apk', 'sudo apk add valkey'],
  ['pacman', 'sudo pacman -S --noconfirm valkey'],
  ['zypper', 'sudo zypper install -y valkey'],
];

/**
 * Absolute path of a `redis-server` or `valkey-server` of this machine. On Debian, as root, a missing one
 * is installed.
 * @throws StartupError with the one command to type where it can't be installed for the person.
 */
export async function ensureRedisServer(say: (line: string) => void): Promise<string> {
  const found = await firstOnPath(SERVERS);
  if (found) return found;
  if (await isDebianAsRoot()) {
    say('No redis-server is installed: installing Debian’s package (once; its service is not started)...');
    await installByApt('redis-server', 'or set REDIS_URL');
    const installed = await firstOnPath(SERVERS);
    if (installed) return installed;
  }
  throw new StartupError('Neither redis-server nor valkey-server is installed.', await nextStep());
}

async function nextStep(): Promise<string> {
  const tool = await firstOnPath(INSTALL_COMMANDS.map(([name]) => name));
  const [, command] = INSTALL_COMMANDS.find(([name]) => tool?.endsWith(`/${name}`)) ?? [];
  const own = 'or set REDIS_URL to a Redis of your own.';
  return command ? `Install it with \`${command}\`, ${own}` : `Install Redis 6.2 or newer, ${own}`;
}
