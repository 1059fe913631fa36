import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks a second of /proc: 100 on every Linux that Node.js runs on. */
const TICK_MS = 10;

interface Row {
  parent: number;
  cpuMs: number;
}

/** CPU times by process, where the system tells them (Linux). */
export class CpuTimes {
  private constructor(
    private readonly rows: ReadonlyMap<number, Row>,
    private readonly busyMs: number,
  ) {}

  static now(): CpuTimes {
    const rows = new Map<number, Row>();
    for (const name of list('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      const fields = read(`/proc/${name}/stat`).split(') ').at(-1)?.split(' ');
      if (!fields || fields.length < 15) continue;
      rows.set(Number(name), {
        parent: Number(fields[1]),
        cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
      });
    }
    const [user = 0, nice = 0, system = 0, , , irq = 0, soft = 0] = (read('/proc/stat').split('\n')[0] ?? '')
      .trim()
      .split(/\s+/)
      .slice(1)
      .map(Number);
    return new CpuTimes(rows, (user + nice + system + irq + soft) * TICK_MS);
  }

  /** CPU in ms of each named process with its descendants, since `before`. */
  since(before: CpuTimes, pids: Readonly<Record<string, number>>): Record<string, number> {
    return Object.fromEntries(
      Object.entries(pids).map(([name, pid]) => [name, this.#family(pid) - before.#family(pid)]),
    );
  }

  /** CPU in ms that neither `pid` nor its descendants took, since `before`. */
  othersSince(before: CpuTimes, pid: number): number {
    return Math.max(0, this.busyMs - before.busyMs - (this.#family(pid) - before.#family(pid)));
  }

  #family(root: number): number {
    let sum = 0;
    for (const pid of this.family(root)) sum += this.rows.get(pid)?.cpuMs ?? 0;
    return sum;
  }

  /** A process and its descendants. */
  family(root: number): Set<number> {
    const family = new Set([root]);
    for (let grew = true; grew; ) {
      grew = false;
      for (const [pid, { parent }] of this.rows) {
        if (family.has(parent) && !family.has(pid)) {
          family.add(pid);
          grew = true;
        }
      }
    }
    return family;
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Empty where there is none, or the process has ended meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
