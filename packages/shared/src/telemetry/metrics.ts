import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Buckets in seconds around the 100 ms that answers should take. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10];
const ITEMS = [1, 2, 4, 8, 16, 32, 64, 128];

function redisSeconds(registers: Registry[]): Histogram {
  return new Histogram({
    name: 'millrace_redis_round_trip_seconds',
    help: 'Round trip of a PING to Redis, twice a second.',
    buckets: SECONDS,
    registers,
  });
}

function loopSeconds(registers: Registry[]): Gauge {
  return new Gauge({
    name: 'millrace_event_loop_delay_seconds',
    help: 'Longest time for which the event loop was held up in the last second.',
    registers,
  });
}

/** Every metric name of the gateway, once. */
export function gatewayMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    redisSeconds: redisSeconds(registers),
    loopSeconds: loopSeconds(registers),
    requests: new Counter({
      name: 'millrace_requests_total',
      help: 'Requests answered, by model, door and HTTP status.',
      labelNames: ['model', 'door', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'millrace_request_duration_seconds',
      help: 'Time from received to answered, by model and door.',
      labelNames: ['model', 'door'],
      buckets: SECONDS,
      registers,
    }),
    stageSeconds: new Histogram({
      name: 'millrace_stage_duration_seconds',
      help: "Time of each stage of a request, read from its stamps; the slowest part's.",
      labelNames: ['model', 'stage'],
      buckets: SECONDS,
      registers,
    }),
    errors: new Counter({
      name: 'millrace_errors_total',
      help: 'Requests that ended in an error, by model and error code.',
      labelNames: ['model', 'code'],
      registers,
    }),
    waiting: new Gauge({
      name: 'millrace_gateway_waiting_requests',
      help: 'Requests of this gateway that wait for their answer.',
      registers,
    }),
    waitingBytes: new Gauge({
      name: 'millrace_gateway_waiting_bytes',
      help: 'Input bytes of the requests that wait in this gateway.',
      registers,
    }),
    queueJobs: new Gauge({
      name: 'millrace_queue_jobs',
      help: 'Jobs in a queue by state (waiting, active).',
      labelNames: ['queue', 'state'],
      registers,
    }),
    queueOldestSeconds: new Gauge({
      name: 'millrace_queue_oldest_seconds',
      help: 'Age of the oldest waiting job of a queue; 0 when none waits.',
      labelNames: ['queue'],
      registers,
    }),
    connections: new Gauge({
      name: 'millrace_gateway_connections',
      help: 'Open connections, HTTP and gRPC.',
      registers,
    }),
    connectionsRefused: new Counter({
      name: 'millrace_gateway_connections_refused_total',
      help: 'Connections refused because there were as many as may be.',
      registers,
    }),
    unreadBytes: new Gauge({
      name: 'millrace_gateway_unread_bytes',
      help: 'Bytes of answers whose clients have not read them yet.',
      registers,
    }),
    answersCut: new Counter({
      name: 'millrace_gateway_unread_answers_cut_total',
      help: 'Answers cut off because too many bytes of answers waited to be read.',
      registers,
    }),
    clientsGone: new Counter({
      name: 'millrace_clients_gone_total',
      help: 'Clients that went away before their answer.',
      labelNames: ['model'],
      registers,
    }),
    idempotentReplays: new Counter({
      name: 'millrace_idempotent_replays_total',
      help: 'Requests answered with the kept answer of an earlier one of the same Idempotency-Key, by model.',
      labelNames: ['model'],
      registers,
    }),
    reAdded: new Counter({
      name: 'millrace_jobs_added_again_total',
      help: 'Jobs added again because Redis came back without them.',
      registers,
    }),
    workersAlive: new Gauge({
      name: 'millrace_workers_alive',
      help: 'Workers that announce themselves as serving a model.',
      labelNames: ['model'],
      registers,
    }),
    batchesRunning: new Gauge({
      name: 'millrace_gateway_batches_running',
      help: 'Batches that this gateway runs now.',
      registers,
    }),
    batchLines: new Counter({
      name: 'millrace_gateway_batch_lines_total',
      help: 'Lines of batches that have their answer: completed or failed.',
      labelNames: ['outcome'],
      registers,
    }),
    callbacks: new Counter({
      name: 'millrace_gateway_callbacks_total',
      help: 'Attempts to deliver callbacks that were answered: delivered, refused; dead are those given up.',
      labelNames: ['outcome'],
      registers,
    }),
  };
}

/** Every metric name of the worker, once. */
export function workerMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    redisSeconds: redisSeconds(registers),
    loopSeconds: loopSeconds(registers),
    items: new Counter({
      name: 'millrace_worker_items_total',
      help: 'Items settled, by model and outcome (ok, failed, expired, cancelled).',
      labelNames: ['model', 'outcome'],
      registers,
    }),
    batchItems: new Histogram({
      name: 'millrace_worker_batch_items',
      help: 'Items in one run.',
      labelNames: ['model'],
      buckets: ITEMS,
      registers,
    }),
    paddingShare: new Histogram({
      name: 'millrace_worker_padding_ratio',
      help: 'Share of a run that is padding.',
      labelNames: ['model'],
      buckets: [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75],
      registers,
    }),
    windowClosed: new Counter({
      name: 'millrace_worker_windows_closed_total',
      help: 'Batch windows closed, by reason (size, cost, time, idle, drain).',
      labelNames: ['model', 'reason'],
      registers,
    }),
    predictionRatio: new Histogram({
      name: 'millrace_worker_prediction_ratio',
      help: "Time of a run divided by the cost curve's prediction; 1 is exact.",
      labelNames: ['model'],
      buckets: [0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4],
      registers,
    }),
    runSeconds: new Histogram({
      name: 'millrace_worker_run_duration_seconds',
      help: 'Time of one run in a session thread.',
      labelNames: ['model'],
      buckets: SECONDS,
      registers,
    }),
    stageSeconds: new Histogram({
      name: 'millrace_worker_stage_duration_seconds',
      help: 'Time of each stage in the worker, a job, read from its stamps.',
      labelNames: ['model', 'stage'],
      buckets: SECONDS,
      registers,
    }),
    sessionsBusy: new Gauge({
      name: 'millrace_worker_sessions_busy',
      help: 'Session threads that run a batch now.',
      labelNames: ['model'],
      registers,
    }),
    sessions: new Gauge({
      name: 'millrace_worker_sessions',
      help: 'Session threads.',
      labelNames: ['model'],
      registers,
    }),
    sessionIdleSeconds: new Counter({
      name: 'millrace_worker_session_idle_seconds_total',
      help: 'Time that session threads had no batch, added up over threads.',
      labelNames: ['model'],
      registers,
    }),
    sessionStarvedSeconds: new Counter({
      name: 'millrace_worker_session_starved_seconds_total',
      help: 'The part of the idle time in which work was waiting in the queue or in this worker.',
      labelNames: ['model'],
      registers,
    }),
    jobsHeld: new Gauge({
      name: 'millrace_worker_jobs_held',
      help: 'Jobs fetched and not yet settled.',
      labelNames: ['model'],
      registers,
    }),
    stalled: new Counter({
      name: 'millrace_worker_stalled_jobs_total',
      help: 'Jobs taken over from a worker that lost them.',
      labelNames: ['model'],
      registers,
    }),
    quarantined: new Counter({
      name: 'millrace_worker_quarantined_items_total',
      help: 'Items given up because workers died while running them.',
      labelNames: ['model'],
      registers,
    }),
    locksLost: new Counter({
      name: 'millrace_worker_locks_lost_total',
      help: 'Job locks that could not be renewed.',
      labelNames: ['model'],
      registers,
    }),
  };
}

export type GatewayMetrics = ReturnType<typeof gatewayMetrics>;
export type WorkerMetrics = ReturnType<typeof workerMetrics>;
