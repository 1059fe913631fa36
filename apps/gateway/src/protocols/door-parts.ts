import type { RedisClock, Settings } from '@millrace/shared';
import type { Infer } from '../inference/infer.js';
import type { ModelDirectory } from '../inference/model-directory.js';

/** What a door needs of the gateway behind it. */
export interface DoorParts {
  clock: RedisClock;
  directory: ModelDirectory;
  infer: Infer;
  settings: Settings;
}
