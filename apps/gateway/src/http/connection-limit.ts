import type { Server, Socket } from 'node:net';
import { type GatewayMetrics, MillraceError } from '@millrace/shared';
import type { DoorErrors } from './context.js';
import { endWith } from './unreadable.js';

/** Connections that may be told at once why they are refused; the system closes those beyond. */
const MOST_REFUSALS = 1000;

/** Refuses a connection of HTTP with an answer that says so. */
export function refuseInHttp(door: DoorErrors): (socket: Socket) => void {
  return (socket) => {
    // What it sends is read and dropped: unread, it would take the answer with it.
    socket.on('error', () => undefined).resume();
    endWith(socket, new MillraceError('too_many_connections', undefined, { retryAfterSeconds: 1 }), door);
  };
}

/** Counts a server's connections, and refuses those beyond `most`. */
export function limitConnections(
  server: Server,
  most: number,
  metrics: Pick<GatewayMetrics, 'connections' | 'connectionsRefused'>,
  refuse: (socket: Socket) => void,
): void {
  let open = 0;
  const serve = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    if (open >= most) {
      metrics.connectionsRefused.inc();
      refuse(socket);
      return;
    }
    open += 1;
    metrics.connections.inc();
    socket.once('close', () => {
      open -= 1;
      metrics.connections.dec();
    });
    for (const listener of serve) listener.call(server, socket);
  });
  server.maxConnections = most + MOST_REFUSALS;
  server.on('drop', () => metrics.connectionsRefused.inc());
}
