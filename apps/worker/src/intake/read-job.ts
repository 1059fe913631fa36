import {
  decodeFrame,
  MillraceError,
  type ModelDescription,
  type Part,
  parseJobData,
  type Tensor,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { HeldJob } from './held-job.js';
import type { FetchedJob } from './job-consumer.js';

/**
 * Validates a fetched job again (another tool may have written it) and reads its tensors.
 * @throws MillraceError when the job can't be understood or its payload is gone.
 */
export async function readJob(fetched: FetchedJob, model: ModelDescription, redis: Redis): Promise<HeldJob> {
  const data = parseJobData(fetched.job.data);
  if (data.model !== model.name || data.version !== model.version) {
    throw new MillraceError('invalid_input', `The job is for ${data.model}@${data.version}.`, {
      field: 'model',
    });
  }
  const held = new HeldJob(fetched, data);
  for (const part of data.parts) held.addPart(part, await readInputs(part, redis));
  return held;
}

async function readInputs(part: Part, redis: Redis): Promise<Tensor[]> {
  const { tensors } = decodeFrame(await readPayload(part, redis));
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

async function readPayload(part: Part, redis: Redis): Promise<Buffer> {
  if ('inline' in part.payload) return Buffer.from(part.payload.inline, 'base64');
  const payload = await redis.getBuffer(part.payload.key);
  if (!payload) throw new MillraceError('internal', 'The input of this part is no longer stored.');
  return payload;
}
