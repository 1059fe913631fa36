import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

let builder: Promise<string> | undefined;

/**
 * The sha256 of the code that builds models: another version of it may make another file of the same inputs.
 * Reading it takes a few ms, once a process.
 */
export function builderSha256(): Promise<string> {
  builder ??= hashCode(dirname(fileURLToPath(import.meta.resolve('@millrace/onnx'))));
  return builder;
}

async function hashCode(dir: string): Promise<string> {
  const names = await readdir(dir, { recursive: true });
  const hash = createHash('sha256');
  for (const name of names.filter((each) => /(?<!\.test)\.js$/.test(each)).sort()) {
    hash.update(`${name}\n`).update(await readFile(join(dir, name)));
  }
  return hash.digest('hex');
}
