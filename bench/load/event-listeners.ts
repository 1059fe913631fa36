import { connect, type Socket } from 'node:net';

/** What the runner asks of the listeners' process, and what it gets back. */
export type ToListeners =
  | { type: 'open'; url: string; jobs: readonly string[]; listeners: number }
  | { type: 'receipts' }
  | { type: 'close' };
export type FromListeners =
  | { type: 'opened' }
  | { type: 'receipts'; ends: readonly End[]; lost: number }
  | { type: 'closed' }
  | { type: 'failed'; message: string };

/** A listener heard that its job is done. */
export interface End {
  job: string;
  /** Epoch ms. */
  at: number;
}

/** Connections that are being opened: all at once would overflow the server's backlog. */
const OPENING = 64;
const DONE = 'event: done\n';

/** Clients that listen for the events of jobs, each over a connection of its own. */
export class EventListeners {
  readonly #sockets = new Set<Socket>();
  #ends: End[] = [];
  #lost = 0;

  /** Resolves when every listener has heard how its job stands. Jobs are listened for in turn. */
  async open(url: string, jobs: readonly string[], listeners: number): Promise<void> {
    let next = 0;
    const opener = async (): Promise<void> => {
      while (next < listeners) {
        const job = jobs[next % jobs.length] ?? '';
        next += 1;
        await this.#listen(new URL(url), job);
      }
    };
    await Promise.all(Array.from({ length: OPENING }, opener));
  }

  /** What was heard since it was asked last, and how many connections were lost. */
  receipts(): { ends: readonly End[]; lost: number } {
    const ends = this.#ends;
    this.#ends = [];
    return { ends, lost: this.#lost };
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
    this.#ends = [];
    this.#lost = 0;
  }

  #listen({ hostname, port }: URL, job: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) });
      this.#sockets.add(socket);
      let done = false;
      // What an event's name may be cut at.
      let tail = '';
      socket.setEncoding('latin1').on('data', (text: string) => {
        const heard = tail + text;
        tail = heard.slice(-DONE.length);
        if (heard.includes('event: ')) resolve();
        if (heard.startsWith('HTTP/1.1') && !heard.startsWith('HTTP/1.1 200')) {
          reject(new Error(`a listener was answered ${heard.slice(9, 12)}`));
        }
        if (done || !heard.includes(DONE)) return;
        done = true;
        this.#ends.push({ job, at: Date.now() });
      });
      const lost = (): void => {
        if (!done && this.#sockets.has(socket)) this.#lost += 1;
        this.#sockets.delete(socket);
        reject(new Error('a listener lost its connection'));
      };
      socket.on('error', lost).on('close', lost);
      socket.write(
        `GET /v1/jobs/${job}/events HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\n\r\n`,
      );
    });
  }
}
