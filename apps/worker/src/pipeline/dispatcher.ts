import type { BatchingOptions, RedisClock, WorkerMetrics } from '@millrace/shared';
import type { Arrivals } from '../intake/arrivals.js';
import type { HeldItem } from '../intake/held-job.js';
import { windowState } from '../intake/window.js';
import type { CostCurve } from '../planning/cost-curve.js';
import { type GroupLimits, type Predictor, planGroups } from '../planning/planner.js';
import type { IdleClock } from '../session/idle-clock.js';
import type { SessionPool } from '../session/session-pool.js';
import type { AloneGate } from '../stalls/alone-gate.js';
import type { ItemPool } from './item-pool.js';
import type { Runner } from './runner.js';
import type { Settler } from './settler.js';

/**
 * CPU time of a run around the model, in ms: hand-overs to its thread and back, the reply script, the jobs'
 * completion. Measured as what makes the whole path fastest at saturation: 0 to 0.3 cost 5% of its requests,
 * 3 costs 4%.
 */
const RUN_OVERHEAD_MS = 1;
/** So long after the last interactive item, in ms, bulk runs stay short: more of its kind are likely to come. */
const INTERACTIVE_MS = 1000;

/**
 * Hands groups of prepared items to sessions. An idle session gets one as soon as the batch window is
 * closed; behind a running batch, the next one waits in the session's slot if enough work is there to make
 * a good group now.
 */
export class Dispatcher {
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #draining = false;
  #stopped = false;
  #interactiveAt = Number.NEGATIVE_INFINITY;
  /** Runs that have not ended and were started for the bulk items in them. */
  #bulkRuns = 0;
  /** Called whenever items left the pool or a session became free. */
  onProgress: () => void = () => undefined;
  /** Whether work waits that has not reached the pool. */
  workComes: () => boolean = () => false;

  constructor(
    private readonly parts: {
      model: string;
      sessions: SessionPool;
      idleClock: IdleClock;
      batching: BatchingOptions;
      pool: ItemPool;
      settler: Settler;
      runner: Runner;
      gate: AloneGate;
      curve: CostCurve;
      arrivals: Arrivals;
      clock: RedisClock;
      /** Predicted ms of waiting work from which a session's slot is filled behind its running batch. */
      slotMs: number;
      /** Longest predicted run of bulk items while interactive ones come, in ms. */
      bulkRunMs: number;
      metrics: WorkerMetrics;
    },
  ) {
    parts.gate.onFree(() => this.pump());
    parts.runner.onNotStarted = (items) => parts.pool.add(items);
  }

  /** Closes the window for good: what is there runs at once. */
  drain(): void {
    this.#draining = true;
    this.pump();
  }

  /** Starts nothing any more. */
  stop(): void {
    this.#stopped = true;
    this.parts.runner.stop();
    clearTimeout(this.#timer);
  }

  /** Drops what waits of a cancelled request. */
  cancel(requestId: string): void {
    this.parts.runner.cancel(requestId);
    this.pump();
  }

  /** Whether a session runs a batch. */
  get busy(): boolean {
    return this.parts.sessions.busy > 0;
  }

  /** Starts what may start now. Cheap to call at every change. */
  pump(): void {
    if (this.#stopped) return;
    this.#startGroups();
    this.parts.idleClock.tick(this.parts.pool.count > 0 || this.workComes());
  }

  #startGroups(): void {
    const { pool, sessions, curve } = this.parts;
    this.#dropWorthless();
    while (pool.count > 0) {
      const idle = sessions.hasIdle;
      const waitingMs = (pool.ms * curve.correction) / sessions.clients.length;
      const nextInMs = sessions.nextInMs;
      const slot = this.parts.batching.prefetch && waitingMs >= this.parts.slotMs;
      if (nextInMs === undefined || (!idle && !slot)) return;
      const now = this.parts.clock.now();
      const state = windowState(
        {
          items: pool.count,
          cost: pool.size,
          oldestEnqueuedAt: pool.oldestEnqueuedAt,
          now,
          arrivalGapMs: this.parts.arrivals.gapMs(now),
          fixedMs: curve.fixedMs,
          sessionBusyMs: idle ? 0 : nextInMs,
          draining: this.#draining,
        },
        this.parts.batching,
      );
      if (typeof state === 'number') {
        this.#pumpAt(state, now);
        return;
      }
      const limits = this.#limits(now);
      const apart = limits.bulkRunMs !== undefined;
      const runCost = this.#runCost();
      const group = planGroups(pool.items, limits, runCost).find((each) => {
        if (each[0]?.alone) return this.parts.gate.free;
        return !apart || !each[0]?.bulk || (idle && this.#bulkMayRun(each, limits, runCost));
      });
      // An item that runs alone never waits in a slot: its marker would charge it with the run before it. Until a session
      // is idle no slot is filled, or none would ever be.
      if (!group || (group[0]?.alone && !idle)) return;
      if (group[0]?.alone) {
        this.parts.gate.take();
        sessions.reserve();
      }
      this.parts.metrics.windowClosed.inc({ model: this.parts.model, reason: state });
      pool.take(group);
      this.#start(group, apart ? group[0]?.bulk === true : group.some(({ bulk }) => bulk));
    }
  }

  /** Tells that interactive work came. `now`: epoch ms of Redis's clock. */
  sawInteractive(now: number): void {
    this.#interactiveAt = now;
  }

  /** Whether interactive work came lately. */
  interactiveLately(now: number): boolean {
    return now - this.#interactiveAt < INTERACTIVE_MS;
  }

  #limits(now: number): GroupLimits {
    const { batching, bulkRunMs } = this.parts;
    return this.interactiveLately(now) ? { ...batching, bulkRunMs } : batching;
  }

  /** A lone request's time is the model's alone; once work piles up, each further run is also paid for around it. */
  #runCost(): Predictor {
    const { pool, sessions, curve } = this.parts;
    if (pool.count <= 2 * sessions.clients.length) return curve;
    return { predictMs: (batch, size) => curve.predictMs(batch, size) + RUN_OVERHEAD_MS };
  }

  #pumpAt(at: number, now: number): void {
    if (at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(
      () => {
        this.#timerAt = Number.POSITIVE_INFINITY;
        this.pump();
      },
      Math.max(0, at - now),
    );
  }

  /** Nothing starts past its deadline, and nothing that nobody waits for. */
  #dropWorthless(): void {
    const { clock, pool, runner, settler } = this.parts;
    const now = clock.now();
    const dropped = pool.takeWhere((item) => item.settled || runner.worthless(item, now) !== undefined);
    for (const item of dropped) {
      const status = runner.worthless(item, now);
      if (status) settler.settle(item, { status });
    }
    if (dropped.length > 0) this.onProgress();
  }

  /**
   * While interactive work comes, bulk items have a session for a short run. One that takes long by itself leaves half
   * of the sessions to that work, which would wait for it to end.
   */
  #bulkMayRun(group: readonly HeldItem[], { bulkRunMs = 0 }: GroupLimits, runCost: Predictor): boolean {
    if (this.#bulkRuns < Math.max(1, Math.floor(this.parts.sessions.clients.length / 2))) return true;
    const largest = group.reduce((most, item) => Math.max(most, item.size), 0);
    return runCost.predictMs(group.length, largest) <= bulkRunMs;
  }

  #start(group: HeldItem[], bulkRun: boolean): void {
    const bulk = bulkRun ? 1 : 0;
    this.#bulkRuns += bulk;
    void this.parts.runner.run(group).finally(() => {
      this.#bulkRuns -= bulk;
      this.onProgress();
      this.pump();
    });
  }
}
