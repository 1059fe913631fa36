import type { Scenario } from '../run/scenario.js';
import { lone } from './lone.js';
import { overhead } from './overhead.js';
import { servedVsRaw } from './served-vs-raw.js';

export const SCENARIOS: readonly Scenario[] = [servedVsRaw, overhead, lone];
