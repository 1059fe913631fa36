import { StartupError } from '../errors/millrace-error.js';
import { SETTINGS, type SettingName, type SettingSpec, type Settings } from './settings.js';

export type SettingFlags = Partial<Record<SettingName, unknown>>;

/**
 * Settings from flags, then the environment, then defaults; frozen.
 * @throws StartupError naming the setting, its value's fault, and how it may be given.
 */
export function loadSettings(env: NodeJS.ProcessEnv, flags: SettingFlags = {}): Settings {
  const settings: Record<string, unknown> = {};
  for (const [name, spec] of Object.entries(SETTINGS) as [SettingName, SettingSpec][]) {
    // An empty variable counts as absent: that is how shells and manifests unset one.
    const given = flags[name] ?? (env[spec.env] || (spec.alias ? env[spec.alias] : undefined)) ?? undefined;
    const parsed = spec.schema.safeParse(given === '' ? undefined : given);
    if (!parsed.success) {
      const shown = spec.secret ? '' : ` is ${JSON.stringify(given)}, which`;
      throw new StartupError(
        `The setting ${spec.env}${shown} is not valid: ${parsed.error.issues[0]?.message ?? 'unknown'}.`,
        `Set ${spec.env} or --${spec.flag}. ${spec.help}`,
      );
    }
    settings[name] = parsed.data;
  }
  return Object.freeze(settings) as Settings;
}

/** The environment that gives a child process the same settings. */
export function settingsToEnv(settings: Settings): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, spec] of Object.entries(SETTINGS) as [SettingName, SettingSpec][]) {
    env[spec.env] = String(settings[name]);
  }
  return env;
}

/** How a setting's default reads to a person. */
export function defaultText(spec: SettingSpec): string {
  if (spec.defaultText !== undefined) return spec.defaultText;
  const value = spec.schema.parse(undefined);
  return Array.isArray(value) ? value.join(',') : String(value);
}
