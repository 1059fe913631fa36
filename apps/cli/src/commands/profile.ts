import { writeFile } from 'node:fs/promises';
import { createLogger, type Settings } from '@millrace/shared';
import type { ModelProfile } from '@millrace/worker';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { busyShare, busyWarning } from '../tuning/busy.js';
import { drawCurve } from '../tuning/curve-drawing.js';
import { prepareShowing } from '../tuning/prepare.js';
import { percent, tableLines } from '../tuning/table.js';

export interface ProfileOptions {
  /** Measure the cost curve anew, and store it. */
  measure?: boolean;
  /** Where the drawing goes; `MODEL-curve.svg` unless told. */
  out?: string;
}

/** `millrace profile MODEL`: what a run of the model costs on this machine, and where its time goes. */
export async function profileCommand(
  settings: Settings,
  host: Host,
  name: string,
  { measure = false, out = `${name}-curve.svg` }: ProfileOptions,
): Promise<number> {
  const prepared = await prepareShowing(settings, host, name);
  if (!prepared) return 1;
  const { profileModel } = await loadWorker();
  const warning = measure ? busyWarning(await busyShare()) : undefined;
  const logger = createLogger(settings.logLevel, { process: 'profile' });
  const profile = await profileModel(prepared, settings, logger, { measure });
  for (const line of describe(name, profile, measure)) host.say(line);
  await writeFile(out, drawingOf(name, profile));
  host.say(`Drawing: ${out}`);
  if (warning) host.say(warning);
  return 0;
}

function describe(name: string, profile: ModelProfile, measured: boolean): string[] {
  const { points, terms, errors, nodes, nodesOf, options, threads } = profile;
  const { fixed, perItem, perUnit, perSquare } = terms;
  const how = measured ? 'measured now and stored' : 'as stored; --measure measures it anew';
  return [
    `${name} on ${profile.device}: ${threads} session thread(s) of ${options.intraOpThreads} intra-op thread(s)` +
      `${options.disabledOptimizers.length > 0 ? `, without ${options.disabledOptimizers.join(', ')}` : ''}`,
    '',
    `Cost curve of one session at rest (${how})`,
    '',
    ...tableLines([
      ['batch', 'size', 'measured ms', 'predicted ms', 'error', 'items/s'],
      ...points.map(({ batch, size, ms, predictedMs }) => [
        String(batch),
        String(size),
        ms.toFixed(3),
        predictedMs.toFixed(3),
        signed(predictedMs / ms - 1),
        ((batch * 1000) / ms).toFixed(0),
      ]),
    ]),
    '',
    'Fitted: ms(batch, size) = fixed + batch x (perItem + perUnit x size + perSquare x size^2)',
    ...tableLines([
      ['term', 'ms', 'what it is'],
      ['fixed', digits(fixed), 'a run, whatever is in it'],
      ['perItem', digits(perItem), 'an item, whatever its size'],
      ['perUnit', digits(perUnit), 'a token or element of an item'],
      ['perSquare', digits(perSquare), 'each pair of tokens of an item (attention)'],
    ]),
    `Error of the fit: mean ${percent(errors.mean)}, largest ${percent(errors.largest)}`,
    '',
    `Nodes of a run of ${nodesOf.batch} x ${nodesOf.size}, by onnxruntime's own profile`,
    '',
    ...tableLines([
      ['kind', 'nodes', 'share'],
      ...nodes
        .filter(({ share }) => share >= 0.001)
        .map((each) => [each.kind, String(each.nodes), percent(each.share)]),
    ]),
  ];
}

function drawingOf(name: string, { points, predictMs }: ModelProfile): string {
  const sizes = [...new Set(points.map(({ size }) => size))].sort((a, b) => a - b);
  const series = sizes.map((size) => ({ size, points: points.filter((point) => point.size === size) }));
  return drawCurve({ title: `${name}: time of a run, one session at rest`, series, predictMs });
}

const digits = (value: number): string => (value === 0 ? '0' : value.toPrecision(3));
const signed = (share: number): string => `${share < 0 ? '-' : '+'}${percent(Math.abs(share))}`;
