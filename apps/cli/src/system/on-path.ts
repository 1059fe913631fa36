import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** First of the commands that the shell finds. The shell looks, so that PATH means what it means elsewhere. */
export async function firstOnPath(commands: readonly string[]): Promise<string | undefined> {
  for (const command of commands) {
    const found = await run('/bin/sh', ['-c', 'command -v "$0"', command]).then(
      ({ stdout }) => stdout.trim(),
      () => '',
    );
    if (found !== '') return found;
  }
  return undefined;
}
