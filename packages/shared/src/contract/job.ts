import { z } from 'zod';
import { MillraceError } from '../errors/millrace-error.js';

/** Raised when a change to jobs or replies can't be read by the version before it. */
export const CONTRACT_VERSION = 1;

/** BullMQ priorities of the classes; the lower number runs first. Every job has one. */
export const PRIORITIES = { interactive: 10, normal: 50, bulk: 100 } as const;
export type PriorityClass = keyof typeof PRIORITIES;

/**
 * What can be asked of a text model besides its own run on the input `text`. The input of the first and the
 * last is BYTES `token_ids` [items], each element an item's token ids as uint32 little-endian.
 *
 * - `embed-tokens`: the model's own outputs, of texts that the client has tokenized; the model's special tokens
 *   are put at both ends where they are not there already.
 * - `tokenize`: BYTES `tokens` [items], each element a JSON list of {id, text, special, start, stop}; no run of
 *   the model. Parameter `add_special_tokens`, true by default.
 * - `detokenize`: BYTES `text` [items]; no run of the model. Parameter `skip_special_tokens`, true by default.
 */
export const OPERATIONS = ['embed-tokens', 'tokenize', 'detokenize'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Tensor bytes of a part up to this many travel inside the job, as base64; more go to a side key. */
export const MAX_INLINE_BYTES = 4096;

/** Who retries a job by hand wants an answer, however old its request is: it gets at least this long, in ms. */
export const RETRY_KEEP_MS = 5 * 60_000;

/** Most items in a part, and parts in a job: far above what gateways send, low enough to allocate for. */
const MAX_PART_ITEMS = 4096;
const MAX_PARTS = 64;

const stamp = z.number().finite();

const partSchema = z.object({
  /** The request's id: our UUID, never the client's. */
  requestId: z.string().min(1).max(64),
  /** Index of the part's first item in its request. */
  firstItem: z.int().min(0),
  /** Items in the part. */
  count: z.int().min(1).max(MAX_PART_ITEMS),
  /** Id of the gateway whose reply channel gets the answer. */
  replyTo: z.string().min(1).max(64),
  /** Epoch ms of Redis's clock after which the answer is worthless; nothing starts past it. */
  deadlineAt: stamp,
  /** What a client that went away means: drop the work, or do it all the same. */
  onDisconnect: z.enum(['cancel', 'keep']),
  /** Name of the API key that sent it, or "anonymous". */
  tenant: z.string().max(128),
  priority: z.int().min(1),
  /** Absent: the model's own run. */
  operation: z.enum(OPERATIONS).optional(),
  /** 0, and one more with every retry by an administrator; a higher one may replace a stored reply. */
  generation: z.int().min(0),
  /** Epoch ms of Redis's clock to which the stored reply is kept; absent: to the deadline plus 10 s. */
  keepUntil: stamp.optional(),
  parameters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  /** W3C traceparent, passed on as it came. */
  traceparent: z.string().max(128).optional(),
  stamps: z.object({ received: stamp, enqueued: stamp }),
  /** The input tensors as a frame: base64 inside the job, or in a side key. */
  payload: z.union([
    z.object({ inline: z.string() }),
    z.object({ key: z.string().min(1), bytes: z.int().min(0) }),
  ]),
});

const jobSchema = z.object({
  v: z.literal(CONTRACT_VERSION),
  model: z.string().min(1),
  version: z.string().min(1),
  parts: z.array(partSchema).min(1).max(MAX_PARTS),
});

/** A run of consecutive items of one request: the unit that is enqueued, cancelled and replied to. */
export type Part = z.infer<typeof partSchema>;
/** What one BullMQ job carries. */
export type JobData = z.infer<typeof jobSchema>;

/**
 * Reads job data that any tool may have written.
 * @throws MillraceError `contract_version_unsupported`, or `invalid_input` naming the field.
 */
export function parseJobData(data: unknown): JobData {
  const version = typeof data === 'object' && data !== null ? (data as { v?: unknown }).v : undefined;
  if (version !== CONTRACT_VERSION) {
    throw new MillraceError(
      'contract_version_unsupported',
      `The job has contract version ${String(version)}; this worker understands ${CONTRACT_VERSION}.`,
    );
  }
  const parsed = jobSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join('.') ?? 'job';
  throw new MillraceError('invalid_input', `The job's ${field} is not valid: ${issue?.message ?? ''}.`, {
    field,
  });
}
