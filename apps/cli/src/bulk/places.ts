import { basename } from 'node:path';
import { StartupError } from '@millrace/shared';

/** Standard input, as a FILE. */
export const STDIN = '-';

/** What was said of where things are and go. */
export interface PlacesSaid {
  /** The input, or what results are named after; absent where only a batch is named. */
  file?: string | undefined;
  out?: string | undefined;
  errors?: string | undefined;
}

/** Where the results of a batch go. */
export interface Places {
  out: string;
  errors: string;
}

/** Ends of names that results do without. */
const ENDS = /(\.(jsonl|ndjson|json))?(\.gz)?$/i;

/** Ids are names of files too. @throws StartupError for what can't be one. */
export function requireBatchId(id: string): void {
  if (/^\w+$/.test(id)) return;
  throw new StartupError(`${JSON.stringify(id)} is not the id of a batch.`, 'Ids begin with "batch_".');
}

/**
 * The places for results: beside the input, or named after the batch in the folder that one is in.
 * @throws StartupError where two files would be one, or a place is no file.
 */
export function placesOf({ file, out, errors }: PlacesSaid, batchId: string): Places {
  const base = file === undefined || file === STDIN ? batchId : file.replace(ENDS, '');
  for (const [flag, place] of Object.entries({ out, errors })) {
    if (place === STDIN)
      throw new StartupError(`--${flag} must be a file.`, 'Results are not written to standard output.');
  }
  const places = { out: out ?? `${base}.out.jsonl`, errors: errors ?? `${base}.errors.jsonl` };
  if (places.out === places.errors || places.out === file || places.errors === file) {
    throw new StartupError(
      'The input, the answers and the errors must be three files.',
      'Name others by --out and --errors.',
    );
  }
  return places;
}

/** What a file is called at the server. */
export function nameOf(file: string): string {
  return file === STDIN ? 'stdin.jsonl' : basename(file);
}

/** What a command to paste into a shell is made of, beside the batch. */
export interface CommandSaid extends PlacesSaid {
  /** The program, as it was called itself. */
  program: string[];
  url?: string | undefined;
}

/** How this program is called: in a clone there is none of its name. @param env npm tells there that it has run it. */
export function programOf({ npm_command }: NodeJS.ProcessEnv): string[] {
  return npm_command === 'exec' ? ['npx', 'millrace'] : ['millrace'];
}

/** The command that comes back to a batch. */
export function comeBack(batchId: string, { program, file, ...flags }: CommandSaid): string {
  const named = file === undefined || file === STDIN ? [] : [file];
  return commandOf(program, named, { resume: batchId, ...flags });
}

/** The command that cancels a batch. */
export function takeBack(batchId: string, { program, url }: CommandSaid): string {
  return commandOf(program, [], { cancel: batchId, url });
}

function commandOf(program: string[], named: string[], flags: Record<string, string | undefined>): string {
  const words = [...program, 'batch', ...named];
  for (const [flag, value] of Object.entries(flags)) {
    if (value !== undefined) words.push(`--${flag}`, value);
  }
  return words.map(quoted).join(' ');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
