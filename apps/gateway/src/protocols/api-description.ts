import type { ErrorCode, MillraceError } from '@millrace/shared';
import type { z } from 'zod';
import type { DoorErrors } from '../http/context.js';

/** A group of operations that speak one protocol. */
export interface DoorApi {
  /** Heads its operations in the document, for people: `Open Inference Protocol`. */
  title: string;
  /** What this door is for, in Markdown. */
  description: string;
  /** The examples of its errors are rendered by this. */
  errors: DoorErrors;
  /** What `errors.render` returns. */
  errorSchema: z.ZodType;
  operations: readonly ApiOperation[];
}

export interface ApiOperation {
  /** Unique in the document, as a function of a client would be named: `predict`. */
  id: string;
  method: 'get' | 'post' | 'delete';
  /**
   * The very path that the router has, Express's optional parts included: each `{/versions/:version}` becomes an
   * operation without it and one with it (`predict`, `predictVersion`).
   */
  path: string;
  summary: string;
  /** Markdown. */
  description?: string;
  /** Needs no API key. */
  open?: boolean;
  /**
   * Goes through `answer(...)`: has the headers `Prefer`, `Idempotency-Key` and `traceparent`, and the errors
   * that any inference may end in.
   */
  infers?: boolean;
  /** In the query or the headers. Those of the path (`model`, `version`) are described in one place for all. */
  parameters?: readonly ApiParameter[];
  request?: ApiRequest;
  /** By status: the answers that are no errors. */
  responses: Readonly<Record<number, ApiResponse>>;
  /**
   * Errors it can answer with beside those that any request may meet (no key, too large headers, a fault in the
   * server) and those of `infers`. Their statuses are those of the door; where its protocol tells errors of one code
   * apart, an error itself stands for its kind.
   */
  errors?: readonly (ErrorCode | MillraceError)[];
}

export interface ApiRequest {
  description?: string;
  /** Whether it may be left out. */
  optional?: true;
  contents: readonly ApiContent[];
}

export interface ApiResponse {
  description: string;
  /** None: the answer has no body. */
  contents: readonly ApiContent[];
  headers?: readonly ApiHeader[];
}

/** A body of one content type. */
export interface ApiContent {
  contentType: string;
  /**
   * The schema that reads the body, or one that the door's answers fit. `.meta({ id: 'PredictRequest' })` names it
   * among the document's components, where each such name is one schema. For bytes: {@link BYTES}.
   */
  schema: z.ZodType | typeof BYTES;
  /** True ones: they fit the schema, and a server with the default models answers those of a request. */
  examples?: Readonly<Record<string, ApiExample>>;
}

/** A body of bytes that are no JSON. */
export const BYTES = 'bytes';

export interface ApiExample {
  summary: string;
  value: unknown;
}

export interface ApiParameter {
  name: string;
  in: 'query' | 'header';
  description: string;
  schema: z.ZodType;
  required?: true;
  example?: string | number | boolean;
}

export interface ApiHeader {
  name: string;
  description: string;
  schema: z.ZodType;
}
