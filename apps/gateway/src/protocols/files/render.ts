import type { FileRecord } from '../../files/file-record.js';

/** A file as every address of `/v1/files` shows it. */
export function fileBody({ id, bytes, createdAt, expiresAt, filename, purpose }: FileRecord): object {
  return {
    id,
    object: 'file',
    bytes,
    created_at: Math.floor(createdAt / 1000),
    expires_at: Math.floor(expiresAt / 1000),
    filename,
    purpose,
    status: 'processed',
  };
}

export function fileListBody(records: readonly FileRecord[], hasMore: boolean): object {
  return {
    object: 'list',
    data: records.map(fileBody),
    first_id: records[0]?.id ?? null,
    last_id: records.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}

export function deletedBody(id: string): object {
  return { id, object: 'file', deleted: true };
}
