import { loadSettings, StartupError } from '@millrace/shared';

/**
 * Where the server is, without a slash at the end.
 * @param said by a flag; otherwise the environment says it, or it is where `millrace up` serves.
 * @throws StartupError for what is no such address.
 */
export function serverUrl(said: string | undefined, env: NodeJS.ProcessEnv): string {
  const given = said || env.MILLRACE_URL || `http://127.0.0.1:${loadSettings(env).port}`;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new StartupError(
      `${JSON.stringify(given)} is not the address of a server.`,
      'Write --url http://HOST:PORT',
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
