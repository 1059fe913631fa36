import { defaultText, SETTINGS, type SettingSpec } from '@millrace/shared';

/** The README's table of settings, made from the settings themselves. */
export function settingsTable(): string {
  const rows = Object.values(SETTINGS).map((spec: SettingSpec) => {
    const variable = spec.alias ? `\`${spec.env}\`, \`${spec.alias}\`` : `\`${spec.env}\``;
    return `| ${variable} | \`--${spec.flag}\` | ${spec.of} | ${defaultText(spec) || 'none'} | ${spec.help.replaceAll('|', '\\|')} |`;
  });
  return ['| Environment | Flag | Read by | Default | Meaning |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  );
}
