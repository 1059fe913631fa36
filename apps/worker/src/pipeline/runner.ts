import { randomUUID } from 'node:crypto';
import { type Logger, MillraceError, type RedisClock, type WorkerMetrics } from '@millrace/shared';
import type { Cancellations } from '../intake/cancellations.js';
import type { HeldItem } from '../intake/held-job.js';
import type { FetchedJob } from '../intake/job-consumer.js';
import type { CostCurve } from '../planning/cost-curve.js';
import { paddingShare } from '../planning/planner.js';
import { monotonicMs } from '../session/monotonic.js';
import { RunNotStarted, type SessionClient, SessionDeath } from '../session/session-client.js';
import type { RunHandle, SessionPool } from '../session/session-pool.js';
import type { AloneGate } from '../stalls/alone-gate.js';
import type { RunMarkers } from '../stalls/markers.js';
import type { Prepared, Task } from '../tasks/task.js';
import type { Settler } from './settler.js';
import type { Throughput } from './throughput.js';

/** A run may take this many times its prediction, or the set bound if that is more. */
const MOST_PREDICTIONS = 10;

/** A group that was handed to a session and has not come back. */
interface Flight {
  readonly group: readonly HeldItem[];
  readonly run: RunHandle;
}

/** Runs groups in sessions and settles their items, whatever becomes of the run. */
export class Runner {
  readonly #flights = new Set<Flight>();
  #stopped = false;
  /** Takes back items whose run was not started. */
  onNotStarted: (items: readonly HeldItem[]) => void = () => undefined;

  constructor(
    private readonly parts: {
      model: string;
      task: Task;
      sessions: SessionPool;
      settler: Settler;
      markers: RunMarkers;
      gate: AloneGate;
      cancellations: Cancellations;
      curve: CostCurve;
      clock: RedisClock;
      /** A run that takes longer is taken for hung, unless its prediction is long. */
      maxRunMs: number;
      throughput: Throughput;
      metrics: WorkerMetrics;
      logger: Logger;
    },
  ) {}

  /** Why an item need not run any more, if that is so. */
  worthless(item: HeldItem, now: number): 'expired' | 'cancelled' | undefined {
    if (item.part.data.deadlineAt < now) return 'expired';
    return this.parts.cancellations.has(item.part.data.requestId) ? 'cancelled' : undefined;
  }

  /** Starts nothing any more, not even the halves of a group that failed. */
  stop(): void {
    this.#stopped = true;
  }

  /** Calls off what waits in a session's slot with an item of this request; its mates come back. */
  cancel(requestId: string): void {
    for (const { group, run } of this.#flights) {
      if (group.some((item) => item.part.data.requestId === requestId)) run.client.skip(run.id);
    }
  }

  /** Runs a group to its end. For an item that runs alone the caller took the gate and reserved a session. */
  async run(group: readonly HeldItem[]): Promise<void> {
    const alone = group.find((item) => item.alone);
    if (!alone) {
      await this.#runGroup(group);
      return;
    }
    try {
      await this.parts.markers.set(alone);
      const ended = await this.#runGroup(group);
      // A marker that can't be cleared counts for nothing while this worker lives.
      if (ended) await this.parts.markers.clear(alone).catch(() => undefined);
    } catch (error) {
      this.parts.settler.abandon(alone);
      this.parts.logger.error({ err: error, requestId: alone.part.data.requestId }, 'a run was not marked');
    } finally {
      this.parts.sessions.unreserve();
      this.parts.gate.release();
    }
  }

  /**
   * Runs a group; if the model fails on it, halves it until only the culprits fail.
   * @returns false when its thread died in it.
   */
  async #runGroup(items: readonly HeldItem[]): Promise<boolean> {
    const { task, sessions, settler, curve, clock, metrics, model } = this.parts;
    const now = clock.now();
    const group = items.filter((item) => this.#worthRunning(item, now));
    if (group.length === 0 || this.#stopped) return true;
    const batch = randomUUID();
    let deadlineAt = Number.POSITIVE_INFINITY;
    for (const item of group) {
      item.part.batches.add(batch);
      item.part.stamp('batched', now);
      deadlineAt = Math.min(deadlineAt, item.part.data.deadlineAt);
    }
    let flight: Flight | undefined;
    try {
      const prepared = group.map((item) => item.prepared as Prepared);
      const largest = prepared.reduce((most, item) => Math.max(most, item.size), 0);
      const predictedMs = curve.predictMs(group.length, largest);
      metrics.batchItems.observe({ model }, group.length);
      metrics.paddingShare.observe({ model }, paddingShare(group));
      const inputs = task.assemble(prepared);
      const limits = {
        startBy: monotonicMs() + deadlineAt - now,
        limitMs: Math.max(this.parts.maxRunMs, MOST_PREDICTIONS * predictedMs),
        predictedMs,
      };
      const run = group[0]?.alone ? sessions.startReserved(inputs, limits) : sessions.start(inputs, limits);
      flight = { group, run };
      this.#flights.add(flight);
      metrics.sessionsBusy.set({ model }, sessions.busy);
      const { outputs, runMs } = await run.result;
      metrics.runSeconds.observe({ model }, runMs / 1000);
      metrics.predictionRatio.observe({ model }, runMs / predictedMs);
      curve.observe(group.length, largest, runMs);
      this.parts.throughput.add(group.length);
      const inferredAt = clock.now();
      const answers = task.split(outputs, group.length);
      for (const [i, item] of group.entries()) {
        item.part.stamp('inferred', inferredAt);
        const { truncated, tokens } = prepared[i] ?? {};
        settler.settle(
          item,
          { status: 'ok', ...(truncated ? { truncated } : {}), ...(tokens === undefined ? {} : { tokens }) },
          answers[i],
        );
      }
      return true;
    } catch (error) {
      return await this.#failed(group, error as Error);
    } finally {
      if (flight) this.#flights.delete(flight);
      metrics.sessionsBusy.set({ model }, sessions.busy);
    }
  }

  /** Nothing starts past its deadline, and nothing that nobody waits for. */
  #worthRunning(item: HeldItem, now: number): boolean {
    if (item.settled) return false;
    const status = this.worthless(item, now);
    if (status) this.parts.settler.settle(item, { status });
    return status === undefined;
  }

  async #failed(group: readonly HeldItem[], error: Error): Promise<boolean> {
    if (error instanceof RunNotStarted || (error instanceof SessionDeath && !error.started)) {
      this.onNotStarted(group);
      return true;
    }
    if (error instanceof SessionDeath) {
      this.parts.logger.error({ err: error }, 'a run was lost');
      await this.#suspect(group);
      return false;
    }
    const [only] = group;
    if (group.length > 1) {
      const half = Math.ceil(group.length / 2);
      const first = await this.#runGroup(group.slice(0, half));
      const second = await this.#runGroup(group.slice(half));
      return first && second;
    }
    if (!only) return true;
    const failure = error instanceof MillraceError ? error : new MillraceError('inference_failed');
    const cause = error.cause instanceof Error ? error.cause.message : error.message;
    this.parts.logger.warn({ requestId: only.part.data.requestId, cause }, 'the model failed on an item');
    this.parts.settler.settle(only, { status: 'failed', code: failure.code, message: failure.message });
    return true;
  }

  /**
   * The group that this process ends with: its jobs are found stalled, and their items run alone elsewhere.
   * If there is but one item, it was alone this time too, and is charged with it.
   */
  async #suspect(group: readonly HeldItem[]): Promise<void> {
    const [only] = group;
    for (const item of group) this.parts.settler.abandon(item);
    if (only && group.length === 1 && !only.alone) await this.parts.markers.set(only).catch(() => undefined);
  }

  /** Gives up on the run that a session is in, for it won't end. */
  async condemn(client: SessionClient): Promise<void> {
    for (const flight of this.#started()) {
      if (flight.run.client !== client) continue;
      this.#flights.delete(flight);
      await this.#suspect(flight.group);
    }
  }

  /** The jobs with an item in a run that has been started and may yet end. */
  get runningJobs(): ReadonlySet<FetchedJob> {
    return new Set(this.#started().flatMap(({ group }) => group.map((item) => item.part.job.fetched)));
  }

  /** Of runs that may yet end, no item is to be charged with this process's end. */
  async acquit(): Promise<void> {
    const alone = this.#started().flatMap(({ group }) => group.filter((item) => item.alone));
    await Promise.all(alone.map((item) => this.parts.markers.clear(item).catch(() => undefined)));
  }

  #started(): Flight[] {
    return [...this.#flights].filter(({ run }) => run.client.head?.id === run.id);
  }
}
