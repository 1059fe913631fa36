/**
 * Every name in Redis, once. Keys of one queue carry the same hash tag `{model@version}`, so that they live
 * in one slot of a cluster. Reply channels are per gateway and untagged: a plain PUBLISH reaches every node.
 */

/** BullMQ's key prefix: its keys are `mr:{model@version}:...`. */
export const BULL_PREFIX = 'mr';

/** The queue of one model version, braces included: `{all-minilm-l6-v2@1}`. */
export function queueName(model: string, version: string): string {
  return `{${model}@${version}}`;
}

/** BullMQ job id of a part. No ":" (BullMQ splits keys at it) and never a plain integer. */
export function jobId(requestId: string, firstItem: number): string {
  return `${requestId}.${firstItem}`;
}

/** Input tensors of a part that are too large for the job. */
export function payloadKey(queue: string, requestId: string, firstItem: number): string {
  return `mr-payload:${queue}:${requestId}.${firstItem}`;
}

/** Stored reply of a part. */
export function replyKey(queue: string, requestId: string, firstItem: number): string {
  return `mr-reply:${queue}:${requestId}.${firstItem}`;
}

/** Tombstone of a cancelled request: its being there is what counts; it expires after the request's deadline. */
export function cancelKey(queue: string, requestId: string): string {
  return `mr-cancel:${queue}:${requestId}`;
}

/** What became of the request that a client named; `name` is a hash of whose key it is and which. */
export function idempotencyRecordKey(queue: string, name: string): string {
  return `mr-idempotency:${queue}:${name}`;
}

/** Hash of a job's run markers: field `item:generation:instance`, value when it began. */
export function markerKey(queue: string, job: string): string {
  return `mr-marker:${queue}:${job}`;
}

/** Channel on which gateways tell a queue's workers of cancelled requests; a message is the request's id. */
export function controlChannel(queue: string): string {
  return `mr-control:${queue}`;
}

/** Channel on which a gateway gets its replies. */
export function replyChannel(gatewayId: string): string {
  return `mr-replies:${gatewayId}`;
}

/**
 * In place of a gateway's id: the reply is for whoever asks for it. Every gateway hears such replies, so only
 * their addresses are published.
 */
export const ANY_GATEWAY = 'any';

/** What a durable request is: its record, by its id. */
export function jobRecordKey(requestId: string): string {
  return `mr-job:${requestId}`;
}

/**
 * The durable requests of one API key; `owner` is a hash of its name. Sorted sets of request ids by when they were
 * received and by when their results go (epoch ms), a hash of the bytes that each counts for, and their sum.
 */
export function ownedJobsKeys(owner: string): {
  received: string;
  until: string;
  bytes: string;
  total: string;
} {
  const of = (what: string): string => `mr-jobs:{${owner}}:${what}`;
  return { received: of('received'), until: of('until'), bytes: of('bytes'), total: of('total') };
}

/** Sorted set of the newest durable requests of all API keys, by when they were received (epoch ms). */
export const NEWEST_JOBS_KEY = '{mr-jobs}:newest';

/** What a stored file is: its record, by its id. */
export function fileRecordKey(id: string): string {
  return `mr-file:${id}`;
}

/** Is there while the objects of a file are being written that has no record yet. */
export function fileHoldKey(id: string): string {
  return `mr-file-hold:${id}`;
}

/**
 * The files of one API key; `owner` is a hash of its name. Sorted sets of file ids by when they were made and by when
 * they no longer count (epoch ms), a hash of the bytes that each counts for, their sum, and those that were deleted
 * lately by when they were made: a list goes on behind them.
 */
export function ownedFilesKeys(owner: string): {
  created: string;
  until: string;
  bytes: string;
  total: string;
  deleted: string;
} {
  const of = (what: string): string => `mr-files:{${owner}}:${what}`;
  return {
    created: of('created'),
    until: of('until'),
    bytes: of('bytes'),
    total: of('total'),
    deleted: of('deleted'),
  };
}

/** Sorted set of all files by when they go (epoch ms), and who sweeps up what has gone. */
export const FILES_EXPIRY_KEY = '{mr-files}:expiry';
export const FILES_SWEEP_KEY = '{mr-files}:sweep';

/** Queue of callbacks that are to be delivered, for all gateways. */
export const CALLBACKS_QUEUE = '{mr-callbacks}';

/** Sorted set of the requests whose end is to be told, by when to look at them next (epoch ms). */
export const CALLBACKS_AWAITED_KEY = '{mr-callbacks}:awaited';

/** Queue of batches that are to be run, for all gateways; its tag is in every key of batches. */
export const BATCHES_QUEUE = '{mr-batches}';

/** Hash of a batch: its record, and what its runner tells between two checkpoints. */
export function batchKey(id: string): string {
  return `${BATCHES_QUEUE}:batch:${id}`;
}

/** Sorted set of one API key's batches by when they were made (epoch ms); `owner` is a hash of its name. */
export function ownedBatchesKey(owner: string): string {
  return `${BATCHES_QUEUE}:of:${owner}`;
}

/** Sorted set of all batches that have not ended, by when they were made (epoch ms). */
export const OPEN_BATCHES_KEY = `${BATCHES_QUEUE}:open`;

/** Hash of worker announcements by worker id, and the sorted set of when each expires (epoch ms). */
export const REGISTRY_ANNOUNCEMENTS_KEY = '{mr-registry}:announcements';
export const REGISTRY_EXPIRY_KEY = '{mr-registry}:expiry';
