import type { Scenario } from '../run/scenario.js';
import { batchingOnOff } from './batching-on-off.js';
import { binaryVsJson } from './binary-vs-json.js';
import { bulk } from './bulk.js';
import { cold } from './cold.js';
import { connections } from './connections.js';
import { depth } from './depth.js';
import { doors } from './doors.js';
import { idle } from './idle.js';
import { int8VsFp32 } from './int8-vs-fp32.js';
import { lone } from './lone.js';
import { overhead } from './overhead.js';
import { overload } from './overload.js';
import { peers } from './peers.js';
import { plannerVsPadding } from './planner-vs-padding.js';
import { prefetch } from './prefetch.js';
import { rolling } from './rolling.js';
import { servedVsRaw } from './served-vs-raw.js';
import { slo } from './slo.js';
import { soak } from './soak.js';
import { sseListeners } from './sse-listeners.js';

export const SCENARIOS: readonly Scenario[] = [
  servedVsRaw,
  plannerVsPadding,
  batchingOnOff,
  int8VsFp32,
  peers,
  overhead,
  binaryVsJson,
  doors,
  lone,
  slo,
  depth,
  connections,
  sseListeners,
  idle,
  cold,
  prefetch,
  overload,
  rolling,
  soak,
  bulk,
];
