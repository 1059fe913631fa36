/** What the runner asks of a process that runs a model without a server around it. */
export type ToRaw =
  | { type: 'load'; modelsDir: string; cacheDir: string; dataDir: string; name: string }
  /** Plans over pools and keeps every session busy. */
  | { type: 'loop'; sentences: readonly string[]; warmUpSeconds: number; seconds: number }
  /** One sentence at a time, from text to vector. */
  | { type: 'lone'; sentences: readonly string[]; warmUpSeconds: number; seconds: number }
  /** The right vectors, each sentence run alone. */
  | { type: 'embed'; sentences: readonly string[] };

export type FromRaw =
  | { type: 'loaded'; threads: number }
  | { type: 'looped'; itemsPerSecond: number; meanBatch: number }
  | { type: 'timed'; p50Ms: number; p99Ms: number }
  | { type: 'embedded'; vectors: number[][] }
  | { type: 'failed'; message: string };
