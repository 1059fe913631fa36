import type { z } from 'zod';

/** One setting; the one place that says all there is to say of it. */
export interface SettingSpec {
  /** Environment variable. */
  env: string;
  /** Second environment variable that is read when the first is absent. */
  alias?: string;
  /** Command-line flag without its dashes. */
  flag: string;
  /** Which process reads it. */
  of: 'all' | 'gateway' | 'worker' | 'up';
  /** What it means, in which unit, and when to change it. */
  help: string;
  /** How the default reads in help and tables, where the schema's own is not the plain truth. */
  defaultText?: string;
  /** Never printed. */
  secret?: boolean;
  schema: z.ZodType;
}
