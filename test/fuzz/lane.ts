import { connect, type Socket } from 'node:net';
import { type Answer, parseAnswers } from './answers.js';
import type { FuzzCase } from './cases.js';

/** Longest wait for an answer, in ms: what the slowest request is allowed, and a second. */
export const ANSWER_MS = 11_000;
/** A connection whose client has no more to say has to be closed within this, in ms. */
const CLOSE_MS = 5_000;
/** So long, in ms, nothing comes for a request of which nobody can say whether it is one. */
const SILENCE_MS = 60;

export interface Reply {
  answers: Answer[];
  fault?: string;
}

/** Sends one case after another: well-framed ones over one connection, others over one of their own. */
export class Lane {
  #kept: Socket | undefined;

  constructor(
    private readonly host: string,
    private readonly port: number,
  ) {}

  async send(each: FuzzCase): Promise<Reply> {
    if (each.raw) return await this.#sendRaw(each);
    // A server may close a connection that was kept; only a fresh one that is lost is a fault.
    const kept = this.#kept;
    if (kept && kept.readyState === 'open') {
      const reply = await this.#ask(kept, each);
      if (reply.answers.length > 0 || !kept.destroyed) return reply;
    }
    return await this.#ask(await this.#open(), each);
  }

  close(): void {
    this.#kept?.destroy();
  }

  async #open(): Promise<Socket> {
    const socket = connect({ host: this.host, port: this.port, noDelay: true });
    socket.on('error', () => undefined);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return socket;
  }

  async #ask(socket: Socket, each: FuzzCase): Promise<Reply> {
    const reply = await exchange(socket, each);
    const last = reply.answers.at(-1);
    this.#kept = undefined;
    if (reply.fault === undefined && last && last.headers.get('connection') !== 'close') this.#kept = socket;
    else socket.destroy();
    return reply;
  }

  async #sendRaw(each: FuzzCase): Promise<Reply> {
    const socket = await this.#open();
    try {
      return await exchange(socket, each);
    } finally {
      // A reset: tens of thousands of connections in TIME_WAIT would use up the ports.
      socket.resetAndDestroy();
    }
  }
}

/** Writes a case and reads what comes back, until that is all that can come. */
function exchange(socket: Socket, { bytes, methods }: FuzzCase): Promise<Reply> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let closing = false;
    let timer: NodeJS.Timeout;
    const finish = (reply: Reply): void => {
      clearTimeout(timer);
      socket.removeAllListeners('data').removeAllListeners('close').removeAllListeners('end');
      resolve(reply);
    };
    const read = () => parseAnswers(Buffer.concat(chunks), methods);
    const timedOut = (): void => {
      const { answers } = read();
      if (closing)
        finish({ answers, fault: `not closed ${CLOSE_MS} ms after its client had no more to say` });
      else if (methods) finish({ answers, fault: `not answered within ${ANSWER_MS} ms` });
      else {
        closing = true;
        timer = setTimeout(timedOut, CLOSE_MS);
        socket.end();
      }
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      const { answers, rest, fault } = read();
      if (fault !== undefined) return finish({ answers, fault });
      const wanted = methods?.length;
      if (wanted !== undefined && answers.length >= wanted) {
        finish(
          rest > 0 || answers.length > wanted
            ? { answers, fault: 'more came than was asked for' }
            : { answers },
        );
      } else if (!closing) {
        clearTimeout(timer);
        timer = setTimeout(timedOut, methods ? ANSWER_MS : SILENCE_MS);
      }
    });
    socket.on('close', () => {
      const { answers, rest, fault } = read();
      if (fault !== undefined) finish({ answers, fault });
      else if (rest > 0) finish({ answers, fault: 'closed in the middle of an answer' });
      else if (
        methods &&
        answers.length < methods.length &&
        answers.at(-1)?.headers.get('connection') !== 'close'
      )
        finish({ answers, fault: 'closed without an answer' });
      else finish({ answers });
    });
    timer = setTimeout(timedOut, methods ? ANSWER_MS : SILENCE_MS);
    socket.write(bytes);
  });
}
