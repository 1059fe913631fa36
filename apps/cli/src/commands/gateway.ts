import type { Gateway } from '@millrace/gateway';
import { createLogger, readKeyEntries, type Settings, StartupError } from '@millrace/shared';
import type { Host } from '../host.js';
import { loadGateway } from '../peers.js';
import { untilAborted } from '../until.js';

/** `millrace gateway`: one gateway until it is told to stop. */
export async function runGateway(settings: Settings, host: Host): Promise<number> {
  requireRedisUrl(settings, 'gateway');
  const { startGateway } = await loadGateway();
  const gateway = await startGateway(settings, createLogger(settings.logLevel, { process: 'gateway' }));
  if (host.parent) {
    const { url, port, grpc } = gateway;
    host.parent.tell({ type: 'ready', url, port, ...(grpc ? { grpc } : {}) });
  } else {
    host.say(
      `Gateway ${gateway.id} serves ${places(gateway)}. ${dashboardLine(gateway.url, settings)} Stop it with Ctrl-C.`,
    );
  }
  await untilAborted(host.stop.asked);
  await gateway.close();
  return 0;
}

function places({ url, socketPath, grpc }: Gateway): string {
  const http = socketPath ? `${url} and ${socketPath}` : url;
  return grpc ? `${http}. gRPC at ${grpc.address}` : http;
}

function dashboardLine(url: string, { dashboardPassword, apiKeys }: Settings): string {
  if (dashboardPassword) return `Dashboard at ${url}/dashboard, user admin.`;
  const admins = readKeyEntries(apiKeys).filter(({ scopes }) => scopes.includes('admin'));
  if (admins.length > 0)
    return `Dashboard at ${url}/dashboard, for ${admins.map(({ name }) => name).join(', ')}.`;
  return 'The dashboard is off: set MILLRACE_DASHBOARD_PASSWORD to switch it on.';
}

/** Processes on several machines can't share a private Redis that one of them starts. */
export function requireRedisUrl(settings: Settings, command: string): void {
  if (settings.redisUrl !== '') return;
  throw new StartupError(
    `\`millrace ${command}\` needs to know which Redis to use.`,
    'Set REDIS_URL or --redis-url, or run `millrace up`, which starts a private one.',
  );
}
