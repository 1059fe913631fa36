import type { RedisClock, Settings } from '@millrace/shared';
import type { RequestHandler } from 'express';
import type { Infer } from '../inference/infer.js';
import type { ModelDirectory } from '../inference/model-directory.js';

/** What a door needs of the gateway behind it. */
export interface DoorParts {
  clock: RedisClock;
  directory: ModelDirectory;
  infer: Infer;
  settings: Settings;
  /** First handler of every route: asks for an API key where there are any. */
  keyed: RequestHandler;
}
