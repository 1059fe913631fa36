/** One answer as it came over the wire. */
export interface Answer {
  status: number;
  /** By lower-case name; the last where one came twice. */
  headers: Map<string, string>;
  body: Buffer;
}

export interface Parsed {
  answers: Answer[];
  /** Bytes of an answer that is not complete yet. */
  rest: number;
  /** What is no HTTP in what came. */
  fault?: string;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const STATUS_LINE = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\x20-\x7e\x80-\xff]*)$/;

/**
 * Reads answers strictly: nothing is repaired. Interim answers (1xx) are left out.
 * @param methods of the requests in order, since an answer to HEAD has no body; the last one stands for the rest.
 */
export function parseAnswers(bytes: Buffer, methods: readonly string[] = []): Parsed {
  const answers: Answer[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    const headEnd = bytes.indexOf(HEAD_END, at);
    if (headEnd < 0) break;
    const lines = bytes.toString('latin1', at, headEnd).split('\r\n');
    const status = Number(STATUS_LINE.exec(lines[0] ?? '')?.[1]);
    if (Number.isNaN(status)) return { answers, rest: 0, fault: `a status line ${quote(lines[0])}` };
    const headers = new Map<string, string>();
    for (const line of lines.slice(1)) {
      const header = HEADER.exec(line);
      if (!header) return { answers, rest: 0, fault: `a header ${quote(line)}` };
      headers.set((header[1] ?? '').toLowerCase(), header[2] ?? '');
    }
    const from = headEnd + HEAD_END.byteLength;
    const method = methods[Math.min(answers.length, methods.length - 1)];
    const body = status < 200 || status === 204 || status === 304 || method === 'HEAD' ? '' : bodyOf(headers);
    if (body === undefined) return { answers, rest: 0, fault: `an answer ${status} without a length` };
    if (typeof body === 'number' && from + body > bytes.byteLength) break;
    if (typeof body === 'number') {
      answers.push({ status, headers, body: bytes.subarray(from, from + body) });
      at = from + body;
      continue;
    }
    const chunks = body === 'chunked' ? dechunked(bytes, from) : { body: Buffer.alloc(0), end: from };
    if (chunks === undefined) break;
    if (chunks.body === undefined) return { answers, rest: 0, fault: 'a chunk without a size' };
    if (status >= 200) answers.push({ status, headers, body: chunks.body });
    at = chunks.end;
  }
  return { answers, rest: bytes.byteLength - at };
}

function bodyOf(headers: Map<string, string>): number | 'chunked' | undefined {
  if (headers.get('transfer-encoding') === 'chunked') return 'chunked';
  const length = headers.get('content-length');
  return length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}

/** Undefined while it is incomplete; without a body where it is no chunks. */
function dechunked(bytes: Buffer, from: number): { body: Buffer | undefined; end: number } | undefined {
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]{1,8}$/i.test(size)) return { body: undefined, end: at };
    const start = lineEnd + 2;
    const length = Number.parseInt(size, 16);
    if (start + length + 2 > bytes.byteLength) return undefined;
    if (length === 0) return { body: Buffer.concat(parts), end: start + 2 };
    parts.push(bytes.subarray(start, start + length));
    at = start + length + 2;
  }
}

const quote = (text: string | undefined): string => JSON.stringify((text ?? '').slice(0, 80));
