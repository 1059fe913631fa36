import { type ClientRequest, type IncomingMessage, request } from 'node:http';

/** One line of an answer, as far as tests read it. */
export interface AnsweredLine {
  line: number;
  id?: string;
  outputs?: unknown[];
  error?: { status: number; code: string; detail: string; field?: string };
}

/** A client of a stream of lines: it sends what and when it likes, and reads when it likes. */
export class StreamClient {
  /** What was answered so far, once it is read. */
  readonly lines: AnsweredLine[] = [];
  readonly request: ClientRequest;
  /** The answer's head; it comes before its lines. */
  readonly head: Promise<IncomingMessage>;
  /** Resolves when the answer is over, however. */
  readonly over: Promise<void>;
  /** Whether the answer came to its end. */
  complete = false;
  #rest = '';

  /** @param reads whether it reads from the beginning; else from {@link read} on. */
  constructor(url: string, headers: Record<string, string> = {}, reads = true) {
    this.request = request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson', ...headers },
      agent: false,
    });
    this.head = new Promise((resolve, reject) => {
      this.request.once('response', resolve);
      this.request.once('error', reject);
    });
    this.head.catch(() => undefined);
    this.request.on('error', () => undefined);
    this.over = new Promise((resolve) => this.request.once('close', resolve));
    this.request.flushHeaders();
    if (reads) void this.read().catch(() => undefined);
  }

  /** Sends lines; what is no text is written as JSON. */
  send(...lines: unknown[]): this {
    for (const line of lines)
      this.request.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
    return this;
  }

  end(): this {
    this.request.end();
    return this;
  }

  /** Begins to read. */
  async read(): Promise<void> {
    const response = await this.head;
    response.setEncoding('utf8').on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.lines.push(JSON.parse(line));
    });
    response.on('error', () => undefined);
    response.on('end', () => {
      this.complete = true;
    });
  }

  get numbers(): number[] {
    return this.lines.map(({ line }) => line);
  }
}
