import type { z } from 'zod';
import { COMMON } from './settings/common.js';
import { FILES } from './settings/files.js';
import { GATEWAY } from './settings/gateway.js';
import { KEPT } from './settings/kept.js';
import { UP } from './settings/up.js';
import { WORKER } from './settings/worker.js';
import type { SettingSpec } from './spec.js';

export type { SettingSpec };

/** Every setting, once: `--help`, the README's table and the loader are all made from this. */
export const SETTINGS = {
  ...COMMON,
  ...GATEWAY,
  ...KEPT,
  ...FILES,
  ...UP,
  ...WORKER,
} as const satisfies Record<string, SettingSpec>;

export type SettingName = keyof typeof SETTINGS;
export type Settings = { readonly [K in SettingName]: z.output<(typeof SETTINGS)[K]['schema']> };
