import { StartupError } from '../errors/millrace-error.js';
import { SETTINGS, type SettingName, type SettingSpec, type Settings } from './settings.js';

export type SettingFlags = Partial<Record<SettingName, unknown>>;

/**
 * Settings from flags, then the environment, then defaults; frozen.
 * @throws StartupError naming the flag or variable that is at fault, and what it must be.
 */
export function loadSettings(env: NodeJS.ProcessEnv, flags: SettingFlags = {}): Settings {
  const settings: Record<string, unknown> = {};
  for (const [name, spec] of Object.entries(SETTINGS) as [SettingName, SettingSpec][]) {
    const { value, from } = given(spec, env, flags[name]);
    const parsed = spec.schema.safeParse(value);
    if (!parsed.success) {
      // Our own schemas say it in words that go on after the setting's name.
      const fault = parsed.error.issues[0]?.message ?? 'is not valid';
      const shown = spec.secret ? '' : ` is ${JSON.stringify(value)}, but`;
      throw new StartupError(`${from}${shown} ${fault}.`, spec.help);
    }
    settings[name] = parsed.data;
  }
  return Object.freeze(settings) as Settings;
}

/** A setting's value and, as a person would write it, where it came from. */
function given(spec: SettingSpec, env: NodeJS.ProcessEnv, flag: unknown): { value: unknown; from: string } {
  if (flag !== undefined && flag !== null) {
    return { value: flag === '' ? undefined : flag, from: `--${spec.flag}` };
  }
  // An empty variable counts as absent: that is how shells and manifests unset one.
  const from = [spec.env, spec.alias].find((variable) => variable && env[variable]) ?? spec.env;
  return { value: env[from] || undefined, from };
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
  return (Array.isArray(value) ? value.join(',') : String(value)) || 'none';
}
