import type { WorkerMetrics } from '@millrace/shared';
import type { SessionPool } from './session-pool.js';

/**
 * Adds up how long sessions had no batch, and how long of that although work waited. It is told at every
 * change; between two changes both numbers stand still.
 */
export class IdleClock {
  #since = performance.now();
  #idle: number;
  #waiting = false;

  constructor(
    private readonly model: string,
    private readonly sessions: SessionPool,
    private readonly metrics: Pick<
      WorkerMetrics,
      'sessions' | 'sessionIdleSeconds' | 'sessionStarvedSeconds'
    >,
  ) {
    this.#idle = sessions.clients.length;
    metrics.sessions.set({ model }, sessions.clients.length);
  }

  /** @param waiting whether work waits in the queue or in this worker from now on. */
  tick(waiting: boolean): void {
    const now = performance.now();
    const seconds = ((now - this.#since) / 1000) * this.#idle;
    if (seconds > 0) {
      this.metrics.sessionIdleSeconds.inc({ model: this.model }, seconds);
      if (this.#waiting) this.metrics.sessionStarvedSeconds.inc({ model: this.model }, seconds);
    }
    this.#since = now;
    this.#idle = this.sessions.clients.length - this.sessions.busy;
    this.#waiting = waiting;
  }
}
