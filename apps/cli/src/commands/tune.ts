import { createLogger, type SessionOptions, type Settings, StartupError } from '@millrace/shared';
import type { PathFigures, PreparedModel, Trial, TuneResult } from '@millrace/worker';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { busyShare, busyWarning } from '../tuning/busy.js';
import { prepareShowing } from '../tuning/prepare.js';
import { percent, tableLines } from '../tuning/table.js';
import { WholePath } from '../tuning/whole-path.js';

export interface TuneFlags {
  /** Time for all of it, in seconds. */
  seconds?: string;
  /** Largest mean difference of outputs; see docs/tuning.md. */
  tolerance?: string;
}

export const TUNE_SECONDS = 90;
const LEAST_SECONDS = 10;
/** Share of the time that the whole path is loaded; the rest of its share are starts of workers. */
const PATH_SHARE = 0.25;
/** A third round is left out when the first two took more than this share: a busy machine starts slowly. */
const OVERTIME_SHARE = 0.5;
const ROUNDS = 3;
const LEAST_ROUNDS = 2;
const LEAST_LOAD_MS = 1000;

/** `millrace tune MODEL`: the session options that serve most on this machine, found by measuring. */
export async function tuneCommand(
  settings: Settings,
  host: Host,
  name: string,
  flags: TuneFlags,
): Promise<number> {
  const { tuneModel, storeTuning, chooseByPath, MARGIN, TOLERANCE } = await loadWorker();
  const seconds = numberOf(flags.seconds, TUNE_SECONDS, LEAST_SECONDS, '--seconds');
  const tolerance = numberOf(flags.tolerance, TOLERANCE, 0, '--tolerance');
  const prepared = await prepareShowing(settings, host, name);
  if (!prepared) return 1;
  const logger = createLogger(settings.logLevel, { process: 'tune' });
  const { asked } = host.stop;
  try {
    const busy = await busyShare();
    const warning = busyWarning(busy);
    host.say(`Tuning ${name} for about ${seconds} s; nothing else should run meanwhile.`);
    if (warning) host.say(warning);
    host.say('Options of one session, each change against the best so far:');
    const onTrial = (trial: Trial): void => host.say(`  ${trialLine(trial)}`);
    const request = { prepared, settings, logger, seconds, tolerance, signal: asked, onTrial };
    const found = await tuneModel(request);
    for (const line of foundLines(found)) host.say(line);

    const figures = await measurePaths(host, settings, prepared, found, seconds);
    const choice = chooseByPath(figures, MARGIN)?.options;
    if (!choice) {
      host.say('No options got through without failed requests; nothing was stored.');
      return 1;
    }
    const report = {
      model: name,
      at: new Date().toISOString(),
      seconds,
      tolerance,
      busy,
      ...reportOf(found, figures),
    };
    const kept = await storeTuning(settings.dataDir, logger, prepared, settings, choice, {
      ...report,
      choice,
    });
    for (const line of await pathLines(figures)) host.say(line);
    host.say(`Chosen: ${optionsText(choice)}${isSame(choice, found.manifest) ? ', as model.yaml says' : ''}`);
    if (settings.sessionThreads > 0)
      host.say('MILLRACE_SESSION_THREADS was set, and goes on to decide the threads.');
    host.say(`Stored in ${kept.path}, used from the next start on; report: ${kept.reportPath}`);
    if (warning) host.say(warning);
    return 0;
  } catch (error) {
    if (!asked.aborted) throw error;
    host.say('Stopped; nothing was stored.');
    return 1;
  }
}

/** Worker after worker, in turn: what disturbs a round disturbs all of them. */
async function measurePaths(
  host: Host,
  settings: Settings,
  prepared: PreparedModel,
  { candidates, samples }: TuneResult,
  seconds: number,
): Promise<PathFigures[]> {
  const deadline = performance.now() + seconds * OVERTIME_SHARE * 1000;
  const loadMs = Math.max(LEAST_LOAD_MS, (seconds * PATH_SHARE * 1000) / (candidates.length * ROUNDS));
  const bodies = samples.map(({ body }) => body);
  host.say('The whole path, gateway to worker, 64 clients:');
  const path = await WholePath.start(host, settings, prepared, bodies);
  try {
    const figures = candidates.map((options): PathFigures => ({ options, rounds: [], failed: 0 }));
    for (let round = 0; round < ROUNDS; round++) {
      if (round >= LEAST_ROUNDS && performance.now() > deadline) break;
      const inTurn = [...figures.entries()];
      // Who is first in a round is last in the next: a machine that grows busy disturbs all alike.
      for (const [i, figure] of round % 2 === 0 ? inTurn : inTurn.reverse()) {
        host.stop.asked.throwIfAborted();
        const { requestsPerSecond, failed, reason } = await path.measure(`${i}`, figure.options, loadMs);
        host.stop.asked.throwIfAborted();
        figure.rounds.push(requestsPerSecond);
        figure.failed += failed;
        const fault = failed > 0 ? `, ${failed} failed: ${reason ?? 'unknown'}` : '';
        host.say(`  ${optionsText(figure.options)}: ${requestsPerSecond.toFixed(0)} requests/s${fault}`);
      }
    }
    for (const i of figures.keys()) await path.keepCurves(`${i}`);
    return figures;
  } finally {
    await path.close();
  }
}

function foundLines({ profile, best, manifest, speed, layouts }: TuneResult): string[] {
  const kinds = profile.slice(0, 5).map(({ kind, share }) => `${kind} ${percent(share, 0)}`);
  const gain = speed === 1 ? 'none won' : `${speed.toFixed(2)}x when measured once more`;
  return [
    `Where a run's time went: ${kinds.join(', ')}`,
    `Changes taken together: ${gain}${best.disabledOptimizers === manifest.disabledOptimizers ? '' : ` (${optionsText(best)})`}`,
    'Sessions alone, all cores:',
    ...tableLines([
      ['session threads', 'intra-op', 'spinning', 'items/s'],
      ...layouts.map((each) => [
        String(each.threads),
        String(each.intraOpThreads),
        each.allowSpinning ? 'yes' : 'no',
        each.rawItemsPerSecond.toFixed(0),
      ]),
    ]).map((line) => `  ${line}`),
  ];
}

async function pathLines(figures: readonly PathFigures[]): Promise<string[]> {
  const { medianOf } = await loadWorker();
  const rows = figures.map(({ options, rounds, failed }, i) => [
    i === 0 ? `model.yaml: ${optionsText(options)}` : optionsText(options),
    medianOf(rounds).toFixed(0),
    rounds.map((round) => round.toFixed(0)).join(' '),
    String(failed),
  ]);
  return tableLines([['options', 'requests/s', 'rounds', 'failed'], ...rows]);
}

function trialLine({ change, verdict, speed, difference, error }: Trial): string {
  const figures = speed === undefined ? '' : ` ${speed.toFixed(3)}x`;
  const apart = difference
    ? `, outputs differ by ${difference.mean.toPrecision(2)} (${difference.largest.toPrecision(2)} at most)`
    : '';
  return `${change}:${figures} ${verdict}${apart}${error ? `: ${error}` : ''}`;
}

function optionsText(options: SessionOptions): string {
  const { threads, intraOpThreads, allowSpinning, graphOptimizationLevel, disabledOptimizers } = options;
  return [
    `${threads || 'auto'} x ${intraOpThreads} threads${allowSpinning ? ' spinning' : ''}`,
    ...(graphOptimizationLevel === 'all' ? [] : [`level ${graphOptimizationLevel}`]),
    ...(disabledOptimizers.length === 0 ? [] : [`without ${disabledOptimizers.join(', ')}`]),
  ].join(', ');
}

function reportOf({ profile, trials, best, speed, layouts, manifest }: TuneResult, path: PathFigures[]) {
  return { manifest, profile, trials, best, speed, layouts, path };
}

function isSame(a: SessionOptions, b: SessionOptions): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function numberOf(given: string | undefined, standard: number, least: number, flag: string): number {
  const value = given === undefined ? standard : Number(given);
  if (Number.isFinite(value) && value >= least) return value;
  throw new StartupError(`${flag} is ${JSON.stringify(given)}.`, `Give a number of at least ${least}.`);
}
