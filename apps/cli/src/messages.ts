import type { ModelDescription } from '@millrace/shared';

/** What a child process tells `millrace up` over its channel. Types only. */
export type FromChild = Ready | Refused | Progress | Loaded;

/** Once: it serves. A gateway says where, a worker says what. */
export interface Ready {
  type: 'ready';
  url: string;
  port?: number;
  /** Where a gateway serves gRPC, as HOST:PORT. */
  grpc?: { address: string; port: number };
  models?: ModelDescription[];
}

/** It can't start, and starting it again would change nothing. */
export interface Refused {
  type: 'refused';
  sentence: string;
  nextStep: string;
}

export interface Progress {
  type: 'progress';
  model: string;
  /** What is done now: `fetching model.safetensors`. */
  step: string;
  /** 0 to 1, of this step. */
  fraction: number;
  detail?: string;
}

/** What a load process measured, for `millrace tune`. */
export interface Loaded {
  type: 'loaded';
  /** Requests a second that were answered with 200. */
  requestsPerSecond: number;
  /** Requests without such an answer, and why the first of them had none. */
  failed: number;
  reason?: string;
}
