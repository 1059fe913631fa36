import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { StartupError } from '../errors/millrace-error.js';
import { type Manifest, manifestSchema } from './schema.js';

const FILE = 'model.yaml';

/**
 * Reads `<modelsDir>/<name>/model.yaml`.
 * @throws StartupError when there is no such model (naming those there are) or its manifest is not valid
 * (naming the field).
 */
export async function loadManifest(modelsDir: string, name: string): Promise<Manifest> {
  const known = await listModels(modelsDir);
  // The name is looked up in the folder's listing, never joined into a path unchecked.
  if (!known.includes(name)) {
    throw new StartupError(
      `There is no model ${JSON.stringify(name)} in ${modelsDir}.`,
      known.length > 0
        ? `Choose from: ${known.join(', ')}.`
        : `Put a model's ${FILE} into ${join(modelsDir, '<name>')}, or set MILLRACE_MODELS_DIR.`,
    );
  }
  const path = join(modelsDir, name, FILE);
  let document: unknown;
  try {
    document = parse(await readFile(path, 'utf8'));
  } catch (cause) {
    throw new StartupError(`${path} is not readable YAML: ${(cause as Error).message}`, 'Mend the file.', {
      cause,
    });
  }
  const parsed = manifestSchema.safeParse(document);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new StartupError(
      `${path}: ${issue?.path.join('.') || 'the manifest'} is not valid: ${issue?.message ?? ''}.`,
      'Mend the field; docs/models.md lists them all.',
    );
  }
  if (parsed.data.name !== name) {
    throw new StartupError(
      `${path} names the model ${parsed.data.name}, but its folder is ${name}.`,
      'Make them equal.',
    );
  }
  return parsed.data;
}

/** Names of the folders that hold a manifest, sorted. */
export async function listModels(modelsDir: string): Promise<string[]> {
  const entries = await readdir(modelsDir, { withFileTypes: true }).catch(() => []);
  const found: string[] = [];
  for (const entry of entries) {
    if (!entry.isDirectory()) continue;
    const files = await readdir(join(modelsDir, entry.name));
    if (files.includes(FILE)) found.push(entry.name);
  }
  return found.sort();
}
