import { createLogger, type Settings, StartupError } from '@millrace/shared';
import type { Host } from '../host.js';
import { loadGateway } from '../peers.js';
import { untilAborted } from '../until.js';

/** `millrace gateway`: one gateway until it is told to stop. */
export async function runGateway(settings: Settings, host: Host): Promise<number> {
  requireRedisUrl(settings, 'gateway');
  const { startGateway } = await loadGateway();
  const gateway = await startGateway(settings, createLogger(settings.logLevel, { process: 'gateway' }));
  if (host.parent) host.parent.tell({ type: 'ready', url: gateway.url, port: gateway.port });
  else {
    const dashboard = settings.dashboardPassword
      ? `Dashboard at ${gateway.url}/dashboard, user admin.`
      : 'The dashboard is off: set MILLRACE_DASHBOARD_PASSWORD to switch it on.';
    host.say(`Gateway ${gateway.id} serves ${gateway.url}. ${dashboard} Stop it with Ctrl-C.`);
  }
  await untilAborted(host.stop.asked);
  await gateway.close();
  return 0;
}

/** Processes on several machines can't share a private Redis that one of them starts. */
export function requireRedisUrl(settings: Settings, command: string): void {
  if (settings.redisUrl !== '') return;
  throw new StartupError(
    `\`millrace ${command}\` needs to know which Redis to use.`,
    'Set REDIS_URL or --redis-url, or run `millrace up`, which starts a private one.',
  );
}
