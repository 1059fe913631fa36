import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 50;
const PROBE_TIMEOUT_MS = 2000;

/** Waits until a gateway has heard of a worker for every model: from then on a pasted line is answered. */
export async function untilGatewayReady(url: string, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const probe = { signal: AbortSignal.any([stop, AbortSignal.timeout(PROBE_TIMEOUT_MS)]) };
    const ready = await fetch(`${url}/v2/health/ready`, probe).then(
      async (response) => {
        await response.body?.cancel();
        return response.ok;
      },
      () => false,
    );
    if (ready) return;
    await sleep(POLL_MS);
  }
}
