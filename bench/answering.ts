/** The process of a server that has its answer at hand: `answering.js ready-gateway` or `bare-express`. */
import { bareExpress, readyGateway } from './serve/answering.js';

const SERVERS: Record<string, () => Promise<number>> = {
  'ready-gateway': readyGateway,
  'bare-express': bareExpress,
};

process.on('disconnect', () => process.exit(0));
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);

const start = SERVERS[process.argv[2] ?? ''];
if (!start) throw new Error(`no such server: ${process.argv[2]}`);
process.send?.({ type: 'listening', port: await start() });
