import { SETTINGS, StartupError } from '@millrace/shared';

/**
 * `npm start --port 9000` keeps the flag to itself and passes `9000` on: what was meant would be ignored.
 * @throws StartupError with the line that works.
 */
export function refuseKeptFlags(env: NodeJS.ProcessEnv, args: readonly string[]): void {
  if (env.npm_lifecycle_event !== 'start') return;
  const kept = Object.values(SETTINGS)
    .map(({ flag }) => ({ flag: `--${flag}`, value: env[`npm_config_${flag.replaceAll('-', '_')}`] }))
    .filter(({ value }) => value);
  if (kept.length === 0) return;
  const stray = args.filter((arg) => arg !== 'up');
  const meant = kept.map(({ flag, value }) => {
    if (value !== 'true') return `${flag} ${value}`;
    // Of several values nobody can tell whose each is.
    if (stray.length === 0) return flag;
    return `${flag} ${kept.length === 1 ? stray.join(' ') : 'VALUE'}`;
  });
  throw new StartupError(
    `npm keeps flags to itself unless a -- is before them: ${kept.map(({ flag }) => flag).join(', ')} did not arrive.`,
    `Write: npm start -- ${meant.join(' ')}`,
  );
}
