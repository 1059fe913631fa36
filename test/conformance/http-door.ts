import type { Answered, Door, HttpForm, HttpRequest, Target } from './door.js';

/** What one HTTP protocol is made of. */
export interface HttpProtocol
  extends Pick<Door, 'name' | 'fieldOf' | 'requireRefusalForm'>,
    Pick<HttpForm, 'path' | 'contentType' | 'body'>,
    Partial<Pick<Door, 'lacks' | 'statuses' | 'otherClass' | 'noText'>> {
  /** Vectors and id of an answer of status 200. */
  read(body: Buffer, headers: Headers): { vectors: number[][]; id?: string | undefined };
  /** The sentence of a refusal's body. */
  messageOf(body: Record<string, unknown>): unknown;
}

/** The raw part of an HTTP answer. */
export interface HttpAnswer {
  headers: Headers;
  /** The parsed JSON of a refusal. */
  refusal: Record<string, unknown>;
}

/** A door that speaks HTTP. */
export function httpDoor(protocol: HttpProtocol): Door {
  const { name, fieldOf, requireRefusalForm, path, contentType, body } = protocol;
  const send = async (to: Target, request: HttpRequest): Promise<Answered> => {
    const response = await fetch(to.url + path(to.model), {
      method: request.method ?? 'POST',
      headers: request.headers,
      ...(request.body ? { body: new Uint8Array(request.body) } : {}),
      ...(request.signal ? { signal: request.signal } : {}),
    });
    return await answered(protocol, response);
  };
  return {
    name,
    lacks: protocol.lacks ?? {},
    statuses: protocol.statuses ?? {},
    otherClass: protocol.otherClass ?? [],
    noText: protocol.noText ?? 3,
    fieldOf,
    requireRefusalForm,
    http: { path, contentType, body, send },
    ask(to, texts, options = {}) {
      const { bytes, headers } = body(to.model, texts, options);
      return send(to, {
        headers: { 'content-type': contentType, ...headers, ...options.headers },
        body: bytes,
        signal: options.signal,
      });
    },
  };
}

async function answered(protocol: HttpProtocol, response: Response): Promise<Answered> {
  const { status, headers } = response;
  const bytes = Buffer.from(await response.arrayBuffer());
  const refusal =
    status === 200 || bytes.byteLength === 0 ? {} : (JSON.parse(bytes.toString()) as Record<string, unknown>);
  const { vectors, id } = status === 200 ? protocol.read(bytes, headers) : { vectors: [], id: undefined };
  return {
    status,
    header: (name) => headers.get(name) ?? undefined,
    vectors,
    message: status === 200 ? '' : String(protocol.messageOf(refusal)),
    id,
    raw: { headers, refusal } satisfies HttpAnswer,
  };
}

/** JSON as a body's bytes. */
export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** `Prefer: wait=SECONDS` (RFC 7240), for protocols that have no word of their own for how long to wait. */
export function preferWait({ waitMs }: { waitMs?: number | undefined }): Record<string, string> {
  return waitMs === undefined ? {} : { prefer: `wait=${Math.ceil(waitMs / 1000)}` };
}

/** Cuts row-major numbers into one vector an item. */
export function rowsOf(data: readonly number[], shape: readonly number[]): number[][] {
  const [count = 0, width = 0] = shape;
  return Array.from({ length: count }, (_, i) => data.slice(i * width, (i + 1) * width));
}
