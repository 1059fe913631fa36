import { createHash, randomBytes } from 'node:crypto';

export type FilePurpose = 'batch' | 'batch_output';

/** All that any gateway needs to find a file: written once all of it is stored. Times in epoch ms of Redis's clock. */
export interface FileRecord {
  v: 1;
  /** `file-` and 32 hexadecimal digits. */
  id: string;
  /** Name of the API key whose it is. */
  owner: string;
  filename: string;
  purpose: FilePurpose;
  createdAt: number;
  expiresAt: number;
  bytes: number;
  /** The objects that hold it, in order. */
  segments: { key: string; bytes: number }[];
  sha256?: string;
}

const ID = /^file-[0-9a-f]{32}$/;
/** Objects of a file are under `files/ID/`. */
const OF_FILE = /^files\/(file-[0-9a-f]{32})\//;

export const FILES_PREFIX = 'files/';

export function newFileId(): string {
  return `file-${randomBytes(16).toString('hex')}`;
}

/** The id of a file that its owner named: the same name is the same file. */
export function namedFileId(owner: string, name: string): string {
  const hash = createHash('sha256').update(JSON.stringify([owner, name]));
  return `file-${hash.digest('hex').slice(0, 32)}`;
}

export function isFileId(id: string): boolean {
  return ID.test(id);
}

/** The file that an object belongs to. */
export function fileOfKey(key: string): string | undefined {
  return OF_FILE.exec(key)?.[1];
}

/** @returns undefined for what is no record, or one of a later version. */
export function readFileRecord(json: string | null): FileRecord | undefined {
  if (json === null) return undefined;
  try {
    const record = JSON.parse(json) as FileRecord;
    return record.v === 1 ? record : undefined;
  } catch {
    return undefined;
  }
}
