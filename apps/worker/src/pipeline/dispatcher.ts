import { randomUUID } from 'node:crypto';
import {
  type BatchingOptions,
  type Logger,
  MillraceError,
  type RedisClock,
  type WorkerMetrics,
} from '@millrace/shared';
import type { Arrivals } from '../intake/arrivals.js';
import type { Cancellations } from '../intake/cancellations.js';
import type { HeldItem } from '../intake/held-job.js';
import { windowState } from '../intake/window.js';
import type { CostCurve } from '../planning/cost-curve.js';
import { type Predictor, paddingShare, planGroups } from '../planning/planner.js';
import type { IdleClock } from '../session/idle-clock.js';
import type { SessionPool } from '../session/session-pool.js';
import type { RunMarkers } from '../stalls/markers.js';
import type { Prepared, Task } from '../tasks/task.js';
import type { ItemPool } from './item-pool.js';
import type { Settler } from './settler.js';
import type { Throughput } from './throughput.js';

/**
 * CPU time of a run around the model, in ms: hand-overs to its thread and back, the reply script, the jobs'
 * completion. Measured as what makes the whole path fastest at saturation: 0 to 0.3 cost 5% of its requests,
 * 3 costs 4%.
 */
const RUN_OVERHEAD_MS = 1;

/**
 * Hands groups of prepared items to sessions. An idle session gets one as soon as the batch window is
 * closed; behind a running batch, the next one waits in the session's slot if enough work is there to make
 * a good group now.
 */
export class Dispatcher {
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #draining = false;
  /** Called whenever items left the pool or a session became free. */
  onProgress: () => void = () => undefined;
  /** Whether work waits that has not reached the pool. */
  workComes: () => boolean = () => false;

  constructor(
    private readonly parts: {
      model: string;
      task: Task;
      sessions: SessionPool;
      idleClock: IdleClock;
      batching: BatchingOptions;
      pool: ItemPool;
      settler: Settler;
      markers: RunMarkers;
      cancellations: Cancellations;
      curve: CostCurve;
      arrivals: Arrivals;
      clock: RedisClock;
      /** Predicted ms of waiting work from which a session's slot is filled behind its running batch. */
      slotMs: number;
      throughput: Throughput;
      metrics: WorkerMetrics;
      logger: Logger;
    },
  ) {}

  /** Closes the window for good: what is there runs at once. */
  drain(): void {
    this.#draining = true;
    this.pump();
  }

  /** Whether a session runs a batch. */
  get busy(): boolean {
    return this.parts.sessions.busy > 0;
  }

  /** Starts what may start now. Cheap to call at every change. */
  pump(): void {
    this.#startGroups();
    this.parts.idleClock.tick(this.parts.pool.count > 0 || this.workComes());
  }

  #startGroups(): void {
    const { pool, sessions, curve } = this.parts;
    this.#dropWorthless();
    while (pool.count > 0) {
      const idle = sessions.hasIdle;
      const waitingMs = (pool.ms * curve.correction) / sessions.clients.length;
      const slot = this.parts.batching.prefetch && sessions.hasSlot && waitingMs >= this.parts.slotMs;
      if (!idle && !slot) return;
      const now = this.parts.clock.now();
      const state = windowState(
        {
          items: pool.count,
          cost: pool.size,
          oldestEnqueuedAt: pool.oldestEnqueuedAt,
          now,
          arrivalGapMs: this.parts.arrivals.gapMs(now),
          fixedMs: curve.fixedMs,
          draining: this.#draining,
        },
        this.parts.batching,
      );
      if (typeof state === 'number') {
        this.#pumpAt(state, now);
        return;
      }
      const [group] = planGroups(pool.items, this.parts.batching, this.#runCost());
      if (!group) return;
      this.parts.metrics.windowClosed.inc({ model: this.parts.model, reason: state });
      pool.take(group);
      this.#start(group);
    }
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
    const now = this.parts.clock.now();
    const dropped = this.parts.pool.takeWhere(
      (item) => item.settled || this.#worthless(item, now) !== undefined,
    );
    for (const item of dropped) {
      const status = this.#worthless(item, now);
      if (status) this.parts.settler.settle(item, { status });
    }
    if (dropped.length > 0) this.onProgress();
  }

  #worthless(item: HeldItem, now: number): 'expired' | 'cancelled' | undefined {
    if (item.part.data.deadlineAt < now) return 'expired';
    return this.parts.cancellations.has(item.part.data.requestId) ? 'cancelled' : undefined;
  }

  #start(group: HeldItem[]): void {
    void this.#run(group).finally(() => {
      this.onProgress();
      this.pump();
    });
  }

  async #run(group: readonly HeldItem[]): Promise<void> {
    const alone = group.find((item) => item.alone);
    if (!alone) return this.#runGroup(group);
    try {
      await this.parts.markers.set(alone);
    } catch (error) {
      return this.#failed(group, error as Error);
    }
    await this.#runGroup(group);
    // A marker that can't be cleared counts for nothing while this worker lives.
    await this.parts.markers.clear(alone).catch(() => undefined);
  }

  /** Runs a group; if the model fails on it, halves it until only the culprits fail. */
  async #runGroup(group: readonly HeldItem[]): Promise<void> {
    const { task, sessions, settler, curve, clock, metrics, model } = this.parts;
    const batch = randomUUID();
    const now = clock.now();
    for (const item of group) {
      item.part.batches.add(batch);
      item.part.stamp('batched', now);
    }
    try {
      const prepared = group.map((item) => item.prepared as Prepared);
      const largest = prepared.reduce((most, item) => Math.max(most, item.size), 0);
      metrics.batchItems.observe({ model }, group.length);
      metrics.paddingShare.observe({ model }, paddingShare(group));
      const running = sessions.run(task.assemble(prepared));
      metrics.sessionsBusy.set({ model }, sessions.busy);
      const { outputs, runMs } = await running;
      metrics.runSeconds.observe({ model }, runMs / 1000);
      metrics.predictionRatio.observe({ model }, runMs / curve.predictMs(group.length, largest));
      curve.observe(group.length, largest, runMs);
      this.parts.throughput.add(group.length);
      const inferredAt = clock.now();
      const items = task.split(outputs, group.length);
      for (const [i, item] of group.entries()) {
        item.part.stamp('inferred', inferredAt);
        const { truncated, tokens } = prepared[i] ?? {};
        settler.settle(
          item,
          { status: 'ok', ...(truncated ? { truncated } : {}), ...(tokens === undefined ? {} : { tokens }) },
          items[i],
        );
      }
    } catch (error) {
      await this.#failed(group, error as Error);
    } finally {
      metrics.sessionsBusy.set({ model }, sessions.busy);
    }
  }

  async #failed(group: readonly HeldItem[], error: Error): Promise<void> {
    const [only] = group;
    if (group.length > 1) {
      const half = Math.ceil(group.length / 2);
      await this.#runGroup(group.slice(0, half));
      await this.#runGroup(group.slice(half));
      return;
    }
    if (!only) return;
    if (error instanceof MillraceError) {
      const cause = error.cause instanceof Error ? error.cause.message : '';
      this.parts.logger.warn({ requestId: only.part.data.requestId, cause }, 'the model failed on an item');
      this.parts.settler.settle(only, { status: 'failed', code: error.code, message: error.message });
      return;
    }
    // The session thread died, and this worker with it: the item runs elsewhere.
    this.parts.settler.abandon(only);
    this.parts.logger.error({ err: error, requestId: only.part.data.requestId }, 'a run was lost');
  }
}
