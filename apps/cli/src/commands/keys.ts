import type { Host } from '../host.js';
import { loadGateway } from '../peers.js';

/** `millrace keys NAME [--scope SCOPE...]`. The key itself is kept nowhere: only its hash goes into the settings. */
export async function makeKey(
  name: string,
  scopes: readonly string[] | undefined,
  host: Host,
): Promise<number> {
  const { makeApiKey } = await loadGateway();
  const { key, entry } = makeApiKey(name, scopes);
  host.say(`Key for ${name}, shown this once: ${key}`);
  host.say(`Entry for MILLRACE_API_KEYS (with commas between several): ${entry}`);
  host.say(`Clients send: Authorization: Bearer ${key}`);
  return 0;
}
