import type { Door } from '../door.js';
import { grpcDoor } from './grpc.js';
import { nativeDoor } from './native.js';
import { openInferenceBinaryDoor } from './open-inference-binary.js';
import { openInferenceJsonDoor } from './open-inference-json.js';
import { openaiBase64Door, openaiFloatDoor } from './openai.js';
import { teiDoor } from './tei.js';

/** Every door, in the order of the table. */
export const DOORS: readonly Door[] = [
  nativeDoor,
  openInferenceJsonDoor,
  openInferenceBinaryDoor,
  grpcDoor,
  openaiFloatDoor,
  openaiBase64Door,
  teiDoor,
];
