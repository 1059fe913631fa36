import { CLIENT_FAULTS } from './client-faults.js';
import type { Fault } from './fault.js';
import { LINK_FAULTS } from './link-faults.js';
import { PROCESS_FAULTS } from './process-faults.js';
import { REDIS_FAULTS } from './redis-faults.js';

/** Every fault, of which each must fire in a run. */
export const FAULTS: readonly Fault[] = [
  ...PROCESS_FAULTS,
  ...LINK_FAULTS,
  ...REDIS_FAULTS,
  ...CLIENT_FAULTS,
];
