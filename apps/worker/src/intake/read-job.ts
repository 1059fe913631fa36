import {
  decodeFrame,
  MillraceError,
  type ModelDescription,
  type Part,
  parseJobData,
  payloadKey,
  queueName,
  RETRY_KEEP_MS,
  type Tensor,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { HeldJob } from './held-job.js';
import type { FetchedJob } from './job-consumer.js';

/**
 * Validates a fetched job again (another tool may have written it) and reads its tensors. A part whose inputs
 * make no sense, or are gone because its request was given up, is faulty by itself.
 * @param now epoch ms of Redis's clock.
 * @throws MillraceError when the job can't be understood.
 */
export async function readJob(
  fetched: FetchedJob,
  model: ModelDescription,
  redis: Redis,
  now: number,
): Promise<HeldJob> {
  const data = parseJobData(fetched.job.data);
  if (data.model !== model.name || data.version !== model.version) {
    throw new MillraceError('invalid_input', `The job is for ${data.model}@${data.version}.`, {
      field: 'model',
    });
  }
  const held = new HeldJob(fetched, data);
  const queue = queueName(data.model, data.version);
  for (const part of data.parts) {
    const asked = retried(inTime(part, now), fetched.job.attemptsMade, now);
    try {
      held.addPart(asked, await readInputs(queue, part, redis));
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      held.addFaultyPart(asked, { code: error.code, message: error.message });
    }
  }
  return held;
}

/** Of a scheduled job that an administrator sent before its time: nothing is to wait for that any more. */
function inTime(part: Part, now: number): Part {
  const { received, enqueued } = part.stamps;
  return enqueued <= now ? part : { ...part, stamps: { received, enqueued: now } };
}

/** A job that ended before was sent again by an administrator: its reply is to replace the one that is stored. */
function retried(part: Part, ended: number, now: number): Part {
  if (!ended) return part;
  const until = now + RETRY_KEEP_MS;
  const { generation, deadlineAt, keepUntil } = part;
  return {
    ...part,
    generation: generation + ended,
    deadlineAt: Math.max(deadlineAt, until),
    keepUntil: Math.max(keepUntil ?? deadlineAt, until),
  };
}

async function readInputs(queue: string, part: Part, redis: Redis): Promise<Tensor[]> {
  const { tensors } = decodeFrame(await readPayload(queue, part, redis));
  if (tensors.length === 0) throw new MillraceError('invalid_input', 'The part has no tensors.');
  const seen = new Set<string>();
  for (const { name, shape } of tensors) {
    if (seen.has(name)) {
      throw new MillraceError('invalid_input', `The part has two tensors named ${name}.`, { field: name });
    }
    seen.add(name);
    if (shape[0] !== part.count) {
      throw new MillraceError(
        'invalid_input',
        `Tensor ${name} has ${shape[0]} items, but its part says ${part.count}.`,
        { field: name },
      );
    }
  }
  return tensors;
}

async function readPayload(queue: string, part: Part, redis: Redis): Promise<Buffer> {
  if ('inline' in part.payload) return Buffer.from(part.payload.inline, 'base64');
  if (part.payload.key !== payloadKey(queue, part.requestId, part.firstItem)) {
    throw new MillraceError('invalid_input', 'The part names a payload that is not its own.', {
      field: 'payload.key',
    });
  }
  const payload = await redis.getBuffer(part.payload.key);
  if (!payload) throw new MillraceError('internal', 'The input of this part is no longer stored.');
  return payload;
}
