import { access, constants, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StartupError } from '@millrace/shared';
import type { Step } from '../steps.js';
import { download, replaceFile } from './download.js';
import { firstFault } from './first-fault.js';
import type { Patience } from './patience.js';
import type { Places } from './places.js';
import type { Batch, BulkServer } from './server.js';
import { bytesText, countText } from './texts.js';

/** Exit codes of a command that ran a batch: all lines answered, or some not. */
const ALL_ANSWERED = 0;
const SOME_FAILED = 2;

export interface Collecting {
  server: BulkServer;
  patience: Patience;
  places: Places;
  show(step: Step): void;
}

/** Fails before anything is run where results could not be written. */
export async function requireWritable({ out, errors }: Places): Promise<void> {
  for (const path of [out, errors]) {
    const there = await stat(path).catch(() => undefined);
    if (there?.isDirectory()) {
      throw new StartupError(`${path} is a folder.`, 'Name a file by --out and --errors.');
    }
    const folder = dirname(path);
    await access(folder, constants.W_OK).catch((cause: Error) => {
      throw new StartupError(
        `Nothing can be written into ${folder}.`,
        'Name another by --out and --errors.',
        {
          cause,
        },
      );
    });
  }
}

/**
 * Fetches the results of a batch that has ended. The two files then hold this batch's lines and no others'.
 * @returns what to say of them, and the exit code.
 * @throws StartupError for one that failed, or was cancelled.
 */
export async function collect(
  batch: Batch,
  parts: Collecting,
): Promise<{ said: string[]; exitCode: number }> {
  const { id, status, errors, output_file_id, error_file_id } = batch;
  const why = errors?.data.map(({ message }) => message).join(' ') ?? '';
  if (status === 'failed' && output_file_id === null && error_file_id === null) {
    throw new StartupError(`Batch ${id} failed: ${why}`, 'Nothing of it was run.');
  }
  const { out, errors: errorsPath } = parts.places;
  if (output_file_id === null) await replaceFile(out, async () => undefined);
  else await fetchTo(output_file_id, out, parts);
  // One of an earlier run would be taken for this one's.
  if (error_file_id === null) await rm(errorsPath, { force: true });
  else await fetchTo(error_file_id, errorsPath, parts);

  const said = await saidOf(batch, parts.places);
  if (status === 'failed') throw new StartupError(`Batch ${id} failed: ${why}`, `${said.join('. ')}.`);
  if (status === 'cancelled') throw new StartupError(`Batch ${id} was cancelled.`, `${said.join('. ')}.`);
  return { said, exitCode: batch.request_counts.failed > 0 ? SOME_FAILED : ALL_ANSWERED };
}

/** How many lines were answered and where they are, a sentence a line. */
async function saidOf(
  { status, completion_window, request_counts, error_file_id }: Batch,
  { out, errors }: Places,
): Promise<string[]> {
  const { total, completed, failed } = request_counts;
  const said = [`${countText(completed)} of ${countText(total)} lines answered: ${out}`];
  if (error_file_id !== null) {
    said.push(`${countText(failed)} failed: ${errors}`);
    const first = await firstFault(errors);
    if (first !== undefined) said.push(`The first is ${first}`);
  }
  if (status === 'expired') said.push(`Its time of ${completion_window} ended before all was run`);
  return said;
}

async function fetchTo(fileId: string, path: string, { server, patience, show }: Collecting): Promise<void> {
  await download(server, fileId, path, patience, (bytes, of) =>
    show({ label: 'fetching', fraction: bytes / of, detail: `${bytesText(bytes)} of ${bytesText(of)}` }),
  );
}
