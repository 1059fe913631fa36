import type { BulkLine } from './bulk-lines.js';
import type { BatchFindings } from './history.js';
import { codeOf } from './http-send.js';
import { misfit } from './misfit.js';

const SHOWN = 3;

/** The files of a batch that has ended; of one that it has not written, nothing. */
export interface BatchFiles {
  output: string;
  errors: string;
}

interface Entry {
  custom_id: string | null;
  line: number;
  response: { status_code: number; body: unknown } | null;
  error: { code: string } | null;
}

/** Compares what a batch wrote with its lines. */
export function findingsOf(lines: readonly BulkLine[], { output, errors }: BatchFiles): BatchFindings {
  const found: BatchFindings = { duplicated: 0, missing: 0, outOfOrder: 0, wrong: 0, told: [] };
  const note = (kind: Exclude<keyof BatchFindings, 'told'>, what: string): void => {
    found[kind]++;
    if (found.told.length < SHOWN) found.told.push(`${kind}: ${what}`);
  };
  const seen = new Set<number>();
  for (const [file, text] of Object.entries({ output, errors })) {
    let last = 0;
    for (const written of text.split('\n')) {
      // Behind the last line end.
      if (written === '') continue;
      const entry = entryOf(written);
      const line = entry && lines[entry.line - 1];
      if (!line) {
        note('wrong', `the ${file} file has ${written.slice(0, 200)}`);
        continue;
      }
      const number = entry.line;
      if (seen.has(number)) note('duplicated', `line ${number}, the second time in the ${file} file`);
      else if (number < last) note('outOfOrder', `line ${number} behind line ${last} in the ${file} file`);
      seen.add(number);
      last = Math.max(last, number);
      const fault = faultOf(line, entry, file === 'output');
      if (fault !== undefined) note('wrong', `line ${number} ${fault}`);
    }
  }
  for (const [i, { text }] of lines.entries()) {
    if (!seen.has(i + 1)) note('missing', `line ${i + 1}, ${text.slice(0, 100)}`);
  }
  return found;
}

function faultOf(
  line: BulkLine,
  { custom_id, response, error }: Entry,
  succeeded: boolean,
): string | undefined {
  if (custom_id !== line.customId) return `is named ${custom_id}, not ${line.customId}`;
  const isOk = response?.status_code === 200;
  if (isOk !== succeeded) return `is in the wrong file, with ${response?.status_code ?? error?.code}`;
  const answered = isOk ? line.read(response.body) : [`error ${error?.code ?? codeOf(response?.body)}`];
  return misfit(line.asked, answered);
}

function entryOf(text: string): Entry | undefined {
  try {
    return JSON.parse(text) as Entry;
  } catch {
    return undefined;
  }
}
