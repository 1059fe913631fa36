import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, MillraceError } from '@millrace/shared';
import { type DoorErrors, doorTaken } from './context.js';
import { API_HEADERS } from './security-headers.js';

/** A client that goes on sending gets to read why it is refused; after this, in ms, it is cut off. */
const LINGER_MS = 1000;

/** What Node.js calls faults that have a code of their own; all others are no HTTP. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

interface Connection extends Duplex {
  /** The answer that is being made or sent now: Node.js tells it in no other way. */
  _httpMessage?: ServerResponse | null;
}

const refused = new WeakSet<Duplex>();

/** Answers what never becomes a request of the app with an error of our shape, and closes its connection. */
export function answerUnreadable(server: Server, door: DoorErrors): void {
  server.on('clientError', (fault: NodeJS.ErrnoException, connection: Connection) => {
    if (fault.code === 'ECONNRESET' || fault.code === 'EPIPE') connection.destroy();
    else refuseConnection(connection, new MillraceError(CODES[fault.code ?? ''] ?? 'invalid_http'), door);
  });
  server.on('connect', (_req: IncomingMessage, connection: Connection) => {
    connection.on('error', () => undefined).resume();
    refuseConnection(
      connection,
      new MillraceError('method_not_allowed', undefined, { field: 'method' }),
      door,
    );
  });
}

/**
 * Answers what comes on a connection with an error, and closes it.
 * @param door whose errors those are that have taken no door of their own.
 */
export function refuseConnection(connection: Connection, error: MillraceError, door: DoorErrors): void {
  // The parser tells of every further piece that comes.
  if (refused.has(connection)) return;
  refused.add(connection);
  refuseInTurn(connection, error, door);
}

function refuseInTurn(connection: Connection, error: MillraceError, door: DoorErrors): void {
  const pending = connection._httpMessage;
  if (pending?.req.complete && !pending.writableFinished) {
    // The fault is in what came behind: first its own answer.
    pending.once('finish', () => refuseInTurn(connection, error, door));
  } else if (!connection.writable || pending?.headersSent) {
    connection.destroy();
  } else {
    endWith(connection, error, (pending && doorTaken(pending)) ?? door);
  }
}

/** An error of our shape to one who has no request in the app. */
export interface BareAnswer {
  status: number;
  headers: string[];
  body: string;
}

export function bareAnswer(error: MillraceError, door: DoorErrors): BareAnswer {
  const requestId = randomUUID();
  const body = JSON.stringify(door.render(error, requestId));
  const headers = ['X-Request-Id', requestId, ...API_HEADERS];
  const status = door.statusOf?.(error) ?? error.spec.status;
  if (status === 429 || status === 503) {
    headers.push('Retry-After', String(error.details.retryAfterSeconds ?? 1));
  }
  headers.push('Content-Type', door.contentType, 'Content-Length', String(Buffer.byteLength(body)));
  headers.push('Connection', 'close');
  return { status, headers, body };
}

/** Writes an error straight to a connection, and closes it. */
export function endWith(connection: Duplex, error: MillraceError, door: DoorErrors): void {
  const { status, headers, body } = bareAnswer(error, door);
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, `Date: ${new Date().toUTCString()}`];
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  connection.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => connection.destroy(), LINGER_MS).unref();
}
