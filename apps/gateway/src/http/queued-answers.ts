import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const queued = new WeakMap<Socket, Set<ServerResponse>>();

/**
 * Lets an answer that waits behind another of its connection (pipelining) hear when that connection is closed: Node.js
 * tells only the one whose turn it is, and of the others nothing would ever end.
 */
export function closeWithSocket(res: ServerResponse): void {
  const { socket } = res.req;
  if (socket.destroyed) {
    close(res);
    return;
  }
  let answers = queued.get(socket);
  if (!answers) {
    const own = new Set<ServerResponse>();
    answers = own;
    queued.set(socket, own);
    socket.once('close', () => {
      for (const each of own) close(each);
    });
  }
  const all = answers;
  all.add(res);
  res.once('close', () => all.delete(res));
}

/** As Node.js does it for the one whose turn it is. */
function close(res: ServerResponse): void {
  if (res.destroyed || res.socket) return;
  res.destroyed = true;
  res.emit('close');
}
