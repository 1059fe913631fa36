import { randomUUID } from 'node:crypto';
import { joinTensors, type RedisClock } from '@millrace/shared';
import { ClientGone } from '../inference/client-gone.js';
import { countTokens } from '../inference/gather.js';
import type { Infer } from '../inference/infer.js';
import type { InferRequest, InferResult } from '../inference/request.js';

/** A group is closed when its inputs have this many bytes: past them, company saves nothing. */
const MOST_GROUP_BYTES = 256 * 1024;

/** What one line asks, as its door has read it. */
export type LineRequest = Pick<
  InferRequest,
  'model' | 'inputs' | 'itemCount' | 'parameters' | 'operation' | 'fieldOf' | 'waitMs'
> & {
  /** Absent: its stream's. */
  priority?: InferRequest['priority'];
};

export interface GroupParts {
  infer: Infer;
  clock: RedisClock;
  tenant: string;
  priority: InferRequest['priority'];
  /** The trace that all of the stream belongs to. */
  traceparent?: string | undefined;
  /** Most items of a group of several lines for a model, now; a longer line runs by itself. */
  mostItems(model: InferRequest['model']): number;
}

interface Waiting {
  line: LineRequest;
  resolve(result: InferResult): void;
  reject(error: unknown): void;
}

interface Group {
  lines: Waiting[];
  items: number;
  bytes: number;
}

/**
 * Runs lines of one stream, those alike together as one request: a request costs both processes and Redis the same
 * whatever is in it. Each line gets the result of its own items, as if it had been asked alone: an item's answer does
 * not depend on its mates.
 */
export class LineGroups {
  readonly #parts: GroupParts;
  readonly #open = new Map<string, Group>();
  readonly #clients = new Set<ClientGone>();
  #abandoned = false;
  #flushing = false;

  constructor(parts: GroupParts) {
    this.#parts = parts;
  }

  /**
   * Runs a line once its group is full, or no more lines come: those that were read in one go travel together.
   * @throws MillraceError as `infer`; what became of its single items stands in the result.
   */
  run(line: LineRequest): Promise<InferResult> {
    return new Promise((resolve, reject) => {
      const key = kindOf(line);
      const bytes = line.inputs.reduce((sum, { data }) => sum + data.byteLength, 0);
      const mostItems = this.#parts.mostItems(line.model);
      let group = this.#open.get(key);
      if (group && group.items + line.itemCount > mostItems) {
        this.#close(key, group);
        group = undefined;
      }
      if (!group) {
        group = { lines: [], items: 0, bytes: 0 };
        this.#open.set(key, group);
      }
      group.lines.push({ line, resolve, reject });
      group.items += line.itemCount;
      group.bytes += bytes;
      if (group.items >= mostItems || group.bytes >= MOST_GROUP_BYTES) this.#close(key, group);
      else this.#flushSoon();
    });
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    for (const [key, group] of this.#open) this.#close(key, group);
  }

  /** Takes back all that has no answer yet; those lines end with `cancelled`. */
  abandon(): void {
    this.#abandoned = true;
    this.#flush();
    for (const client of this.#clients) client.tell();
  }

  #close(key: string, group: Group): void {
    this.#open.delete(key);
    this.#run(group).catch((error: unknown) => {
      for (const { reject } of group.lines) reject(error);
    });
  }

  async #run({ lines, items }: Group): Promise<void> {
    const { infer, clock, tenant, priority, traceparent } = this.#parts;
    const [first] = lines;
    if (!first) return;
    const { model, parameters, operation, waitMs } = first.line;
    const client = new ClientGone();
    if (this.#abandoned) client.tell();
    this.#clients.add(client);
    const received = clock.now();
    const request: InferRequest = {
      requestId: randomUUID(),
      model,
      inputs: joined(lines),
      itemCount: items,
      parameters,
      ...(operation === undefined ? {} : { operation }),
      waitMs,
      deadlineAt: received + waitMs,
      tenant,
      priority: first.line.priority ?? priority,
      // Whether a failed item fails its line is the line's affair.
      partial: true,
      ...(traceparent === undefined ? {} : { traceparent }),
      stamps: { received },
      client,
    };
    try {
      const result = await infer(request);
      let at = 0;
      for (const { line, resolve } of lines) {
        resolve(sliceOf(result, at, line));
        at += line.itemCount;
      }
    } finally {
      this.#clients.delete(client);
    }
  }
}

/** The same for lines that can run as one request. */
function kindOf({ model, inputs, parameters, operation, priority, waitMs }: LineRequest): string {
  let kind = `${model.name}@${model.version} ${operation ?? ''} ${priority ?? ''} ${waitMs} `;
  for (const { name, datatype, shape } of inputs) kind += `${name}:${datatype}:${shape.slice(1)} `;
  return kind + JSON.stringify(parameters);
}

/** The inputs of lines alike, one behind the other. */
function joined(lines: readonly Waiting[]): InferRequest['inputs'] {
  const [first] = lines;
  if (!first || lines.length === 1) return first?.line.inputs ?? [];
  return first.line.inputs.map((_, index) =>
    joinTensors(lines.flatMap(({ line }) => line.inputs[index] ?? [])),
  );
}

/** What a result says of the items of one of its lines. */
function sliceOf(result: InferResult, first: number, { itemCount, fieldOf }: LineRequest): InferResult {
  const end = first + itemCount;
  const items = result.items.slice(first, end);
  return {
    ...result,
    fieldOf,
    items,
    outputs: result.outputs.map((column) => ({ ...column, items: column.items.slice(first, end) })),
    ...countTokens(items),
  };
}
