import type { Settings } from '@millrace/shared';
import type { RequestHandler } from 'express';
import type { BodyBytes } from '../http/body.js';
import type { RecordParts } from '../http/context.js';
import type { GatewayState } from '../http/health.js';
import type { Infer } from '../inference/infer.js';
import type { ModelDirectory } from '../inference/model-directory.js';
import type { StatisticsBook } from '../inference/model-statistics.js';
import type { Answering } from './answering.js';
import type { OpenStreams } from './open-streams.js';

/** What a door needs of the gateway behind it. */
export interface DoorParts extends RecordParts {
  directory: ModelDirectory;
  bodies: BodyBytes;
  /** Runs what the door has read and answers. */
  answer: Answering;
  /** Runs one request that a door answers itself. */
  infer: Infer;
  state: GatewayState;
  /** Where requests that go on until somebody ends them are told of the gateway's end. */
  streams: OpenStreams;
  /** What has become of this gateway's requests, by model. */
  statistics: StatisticsBook;
  settings: Settings;
  /** Why this gateway can't serve any model now; none where it can. */
  faults: () => readonly string[];
  /** First handler of every route: asks for an API key of the scope `infer` where there are any. */
  keyed: RequestHandler;
}
