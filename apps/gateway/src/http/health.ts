import type { LoopWatch } from '@millrace/shared';
import type { JobProducer } from '../inference/job-producer.js';
import type { ModelDirectory } from '../inference/model-directory.js';
import type { ReplyChannel } from '../inference/reply-channel.js';

/** Whether this gateway should be sent requests, and if not, why. */
export interface Readiness {
  ready: boolean;
  reasons: string[];
}

/** Serving, or on the way out; and how many requests are being answered. */
export class GatewayState {
  #draining = false;
  #active = 0;
  #idle: (() => void) | undefined;

  get draining(): boolean {
    return this.#draining;
  }

  drain(): void {
    this.#draining = true;
  }

  /** A request came; {@link leave} when its answer is sent or its client gone. */
  enter(): void {
    this.#active += 1;
  }

  leave(): void {
    this.#active -= 1;
    if (this.#active === 0) this.#idle?.();
  }

  /** Resolves when every request is answered, or after `timeoutMs`; true in the first case. */
  async untilIdle(timeoutMs: number): Promise<boolean> {
    if (this.#active === 0) return true;
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), Math.max(0, timeoutMs));
      this.#idle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}

export type ReadinessCheck = () => Readiness;

/** Why a gateway can't serve any model: it drains, Redis doesn't answer, replies can't be heard, its event loop is held up. */
export function gatewayFaults(
  state: GatewayState,
  producer: JobProducer,
  directory: ModelDirectory,
  replies: ReplyChannel,
  loop: LoopWatch,
): () => string[] {
  return () => {
    const faults: string[] = [];
    if (state.draining) faults.push('shutting down');
    if (!producer.ready || !directory.fresh || !replies.ready) faults.push('Redis does not answer');
    if (loop.lagging) faults.push('the event loop is held up');
    return faults;
  };
}

/** Ready means: nothing keeps the gateway from serving, and every configured model is served. */
export function readinessCheck(faults: () => readonly string[], directory: ModelDirectory): ReadinessCheck {
  return () => {
    const reasons = [...faults(), ...directory.missing().map((name) => `no worker serves ${name}`)];
    return { ready: reasons.length === 0, reasons };
  };
}
