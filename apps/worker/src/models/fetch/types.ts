import type { ModelFile } from '@millrace/shared';

/** What is going on while a model is prepared, in a form a progress bar can draw. */
export interface PrepareProgress {
  model: string;
  /**
   * `wait`: another process prepares this model. `fetch`: files come from a source. `build`: the ONNX file
   * is made. `ready`: sent once, last.
   */
  step: 'wait' | 'fetch' | 'build' | 'ready';
  /** 0 to 1, of this step. */
  fraction: number;
  /** One short phrase for a person: from where, which file. */
  detail?: string;
  /** Bytes that are here and bytes in all; only for `fetch`. */
  bytes?: number;
  totalBytes?: number;
}

export type OnProgress = (progress: PrepareProgress) => void;

/** How long a source may keep silent, in ms. */
export interface FetchLimits {
  /** From asking the hub to its first byte, connecting included; once for every redirect. */
  firstByteMs: number;
  /** Between two pieces of a body. */
  idleMs: number;
  /** Between two signs of life of pip. */
  pipIdleMs: number;
}

export const FETCH_LIMITS: FetchLimits = { firstByteMs: 5_000, idleMs: 15_000, pipIdleMs: 30_000 };

/** A file that is not here yet. */
export interface WantedFile extends ModelFile {
  /** Its name in the manifest: a relative path with `/`. */
  name: string;
  /** Where it belongs. */
  path: string;
}

export interface FetchContext {
  env: NodeJS.ProcessEnv;
  limits: FetchLimits;
  /** Folder for unfinished files, on the same disk as where files belong. */
  workDir: string;
  signal: AbortSignal;
  /** Bytes of a file that are here by now; may fall when a download starts over. */
  onBytes: (file: WantedFile, bytes: number, detail: string) => void;
}

/** One place official files come from. */
export interface FileSource {
  /** How a person would call it. */
  readonly label: string;
  /**
   * Puts the files where they belong, verified. Answers why for each that it could not, by name.
   * @throws only what is not the source's fault: the signal's reason, or a disk that can't be written.
   */
  fetch(files: readonly WantedFile[], context: FetchContext): Promise<Map<string, string>>;
}

/** A source's own failure, in a phrase that completes "SOURCE: ...". */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
  /** The source as a whole doesn't answer: asking it for the next file would only take time. */
  readonly unreachable: boolean;

  constructor(reason: string, options: { unreachable?: boolean } & ErrorOptions = {}) {
    super(reason, options);
    this.unreachable = options.unreachable ?? false;
  }
}
