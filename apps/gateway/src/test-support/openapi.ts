import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';

/** As much of an OpenAPI document as tests read. */
export interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, unknown>>;
}

export interface Operation {
  operationId: string;
  parameters?: { name: string; in: string; required?: boolean; example?: unknown }[];
  requestBody?: { required: boolean; content: Record<string, Content> };
  responses: Record<string, Reference | Response_>;
  security?: unknown[];
}

/** An operation, and where it is. */
export interface Documented {
  method: string;
  path: string;
  operation: Operation;
}

export interface Content {
  schema: object;
  examples?: Record<string, { value: unknown }>;
}

interface Response_ {
  content?: Record<string, Content>;
}

interface Reference {
  $ref: string;
}

export interface ExampleRequest {
  url: string;
  init: RequestInit;
}

const DOCUMENT = 'openapi.json';

/** Checks values and answers by a document's own schemas. */
export class OpenApiReader {
  readonly #document: Document;
  readonly #ajv: Ajv2020;
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: Document) {
    this.#document = document;
    this.#ajv = new Ajv2020({ strict: false, allErrors: true });
    ajvFormats.default(this.#ajv);
    this.#ajv.addFormat('base64', /^[A-Za-z0-9+/]*={0,2}$/);
    this.#ajv.addSchema(document, DOCUMENT);
  }

  operations(): Documented[] {
    return Object.entries(this.#document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
    );
  }

  /** What is wrong with a value by one of the document's schemas. */
  faults(schema: object, value: unknown): string[] {
    const absolute = JSON.stringify(schema).replaceAll('"#/', `"${DOCUMENT}#/`);
    const validate = this.#validators.get(absolute) ?? this.#ajv.compile(JSON.parse(absolute) as object);
    this.#validators.set(absolute, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }

  resolve(response: Reference | Response_): Response_ {
    if (!('$ref' in response)) return response;
    const [, , kind = '', name = ''] = response.$ref.split('/');
    return this.#document.components[kind]?.[name] as Response_;
  }

  /** What is wrong with an answer by what the document says of its operation. */
  async faultsOf(operation: Operation, response: Response): Promise<string[]> {
    const described = operation.responses[response.status];
    const text = await response.text();
    if (!described) return [`The status ${response.status} is not described.`];
    const type = response.headers.get('content-type')?.split(';')[0] ?? '';
    const content = this.resolve(described).content?.[type];
    if (!content) return [`The content type ${type} of ${response.status} is not described.`];
    return this.faults(content.schema, /\bjson$/.test(type) ? JSON.parse(text) : text);
  }

  /**
   * The requests that an operation's examples make: one a body.
   * @param values of the path's parameters, before their examples.
   */
  requests(
    base: string,
    { method, path, operation }: Documented,
    values: Readonly<Record<string, string>> = {},
  ): ExampleRequest[] {
    const { parameters = [], requestBody } = operation;
    let url = base + path;
    for (const { name, in: place, example } of parameters) {
      if (place === 'path')
        url = url.replace(`{${name}}`, encodeURIComponent(values[name] ?? String(example)));
    }
    const bodies = Object.entries(requestBody?.content ?? {}).flatMap(([type, { examples = {} }]) =>
      Object.values(examples).map(({ value }) => ({
        headers: { 'content-type': type },
        body: JSON.stringify(value),
      })),
    );
    const inits = requestBody ? bodies : [{}];
    return inits.map((init) => ({ url, init: { method: method.toUpperCase(), ...init } }));
  }
}
