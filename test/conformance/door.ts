import type { ErrorCode } from '@millrace/shared';

/** A gateway and a model of it. */
export interface Target {
  /** `http://HOST:PORT` of its HTTP doors. */
  url: string;
  /** `HOST:PORT` of its gRPC door. */
  grpc: string;
  model: string;
}

/** What a request asks beside its texts; each door says it in its protocol's own way. */
export interface AskOptions {
  /** Headers, or metadata where the protocol has those. */
  headers?: Record<string, string>;
  /** How long the answer may take. */
  waitMs?: number;
  /** The client's own id of the request, to be echoed. */
  id?: string;
  signal?: AbortSignal;
}

/** An answer in terms that all protocols share. */
export interface Answered {
  /** The HTTP status, or the one that stands for the protocol's own. */
  status: number;
  /** A header, or an entry of the metadata that came with the answer. */
  header(name: string): string | undefined;
  /** One a text; none in a refusal. */
  vectors: number[][];
  /** The sentence of a refusal. */
  message: string;
  /** The client's id, where the answer has it. */
  id: string | undefined;
  /** What the protocol's own form of the answer is checked by. */
  raw: unknown;
}

/** What a door that speaks HTTP sends, for requests that are wrong as HTTP. */
export interface HttpForm {
  path(model: string): string;
  /** Of a body that this door takes. */
  contentType: string;
  body(
    model: string,
    texts: readonly unknown[],
    options?: AskOptions,
  ): { bytes: Buffer; headers?: Record<string, string> };
  /** Sends anything to the door and reads what comes back. */
  send(to: Target, request: HttpRequest): Promise<Answered>;
}

export interface HttpRequest {
  method?: string;
  headers: Record<string, string>;
  body?: Buffer;
  signal?: AbortSignal | undefined;
}

/** One door: how to ask it, and what its protocol says that others don't. */
export interface Door {
  /** As the table of features names it. */
  name: string;
  /** Features that its protocol has no place for, by their keys, with the reason. */
  lacks: Readonly<Record<string, string>>;
  /** Statuses of codes where the protocol has another than the table of codes. */
  statuses: Partial<Readonly<Record<ErrorCode, number>>>;
  /** Codes whose status is of another class than at all other doors, as its specification wants it. */
  otherClass: readonly ErrorCode[];
  /** How it names the text of an index in a refusal. */
  fieldOf(index: number): string;
  /** Something in place of a text that this protocol can carry and that is none. */
  noText: unknown;
  ask(to: Target, texts: readonly unknown[], options?: AskOptions): Promise<Answered>;
  /** Fails unless a refusal has the form of the door's specification. */
  requireRefusalForm(answer: Answered): void;
  http?: HttpForm;
}
