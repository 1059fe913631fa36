import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SessionThreadOptions, WireTensor } from '../session/messages.js';
import { SessionClient } from '../session/session-client.js';

/** What one kind of node takes of a run's time. */
export interface NodeShare {
  /** onnxruntime's operator, after its fusions: `MatMulIntegerToFloat`. */
  kind: string;
  /** 0 to 1 of the time spent in nodes. */
  share: number;
  /** Nodes of this kind in the graph. */
  nodes: number;
}

interface ProfileEvent {
  cat?: string;
  name?: string;
  dur?: number;
  args?: { op_name?: string; node_index?: string };
}

const RUNS = 5;
const KERNEL = '_kernel_time';

/** onnxruntime's own profile of a few runs, kinds by their share of the time, the largest first. */
export async function profileNodes(
  options: Omit<SessionThreadOptions, 'profilePrefix'>,
  inputs: () => WireTensor[],
): Promise<NodeShare[]> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-profile-'));
  try {
    const session = await SessionClient.open({ ...options, profilePrefix: join(folder, 'nodes') });
    try {
      for (let run = 0; run < RUNS; run++) await session.run(inputs());
    } finally {
      // The file is written when the thread releases its session.
      await session.release();
    }
    const [file] = await readdir(folder);
    if (file === undefined) return [];
    return nodeShares(JSON.parse(await readFile(join(folder, file), 'utf8')) as ProfileEvent[]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Sums a profile's kernel times by kind of node. */
export function nodeShares(events: readonly ProfileEvent[]): NodeShare[] {
  const kinds = new Map<string, { time: number; nodes: Set<string> }>();
  let total = 0;
  for (const { cat, name = '', dur = 0, args = {} } of events) {
    if (cat !== 'Node' || !name.endsWith(KERNEL) || args.op_name === undefined) continue;
    const kind = kinds.get(args.op_name) ?? { time: 0, nodes: new Set() };
    kind.time += dur;
    kind.nodes.add(name);
    kinds.set(args.op_name, kind);
    total += dur;
  }
  return [...kinds]
    .map(([kind, { time, nodes }]) => ({ kind, share: time / Math.max(total, 1), nodes: nodes.size }))
    .sort((a, b) => b.share - a.share);
}
