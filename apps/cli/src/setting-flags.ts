import {
  defaultText,
  loadSettings,
  SETTINGS,
  type SettingFlags,
  type SettingName,
  type SettingSpec,
  type Settings,
} from '@millrace/shared';
import { type Command, Option } from 'commander';
import type { Host } from './host.js';
import { absoluteFolders } from './places.js';

/** Who reads the settings, or the very settings where a command reads but a few. */
export type Audience = SettingSpec['of'] | readonly SettingName[];

const specs = Object.entries(SETTINGS) as [SettingName, SettingSpec][];

/** Gives a command a flag for every setting that its audience reads; `up` passes all of them on. */
export function addSettingFlags(command: Command, audience: Audience): Command {
  for (const [name, spec] of specs) {
    if (reads(audience, name, spec)) command.addOption(option(name, spec));
  }
  return command;
}

function reads(audience: Audience, name: SettingName, spec: SettingSpec): boolean {
  if (typeof audience !== 'string') return audience.includes(name);
  return audience === 'up' || spec.of === 'all' || spec.of === audience;
}

function option(name: SettingName, spec: SettingSpec): Option {
  const isSwitch = typeof spec.schema.parse(undefined) === 'boolean';
  const variables = spec.alias ? `${spec.env} or ${spec.alias}` : spec.env;
  const described = `${spec.help} [${variables}; default: ${defaultText(spec)}]`;
  const made = new Option(`--${spec.flag} ${isSwitch ? '[true|false]' : '<value>'}`, described);
  if (made.attributeName() !== name) throw new Error(`--${spec.flag} is not the flag of a setting "${name}"`);
  return made;
}

/** Settings from a command's flags and the environment, with absolute folders. */
export async function settingsFrom(
  command: Command,
  { env, mainFile }: Pick<Host, 'env' | 'mainFile'>,
): Promise<Settings> {
  const given = command.opts<Record<string, unknown>>();
  const flags: SettingFlags = {};
  for (const [name] of specs) {
    if (given[name] !== undefined) flags[name] = given[name];
  }
  const settings = loadSettings(env, flags);
  const isGiven = flags.modelsDir || env[SETTINGS.modelsDir.env];
  return { ...settings, ...(await absoluteFolders(settings, mainFile, !isGiven)) };
}
