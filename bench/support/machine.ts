import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';

/** Where and with what a benchmark ran. */
export interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  kernel: string;
  node: string;
  /** Of each peer, e.g. `nginx/1.22.1`. */
  tools: Record<string, string>;
  /** One-minute load average when the run began; above 0.5 per core the machine was busy with something else. */
  loadAtStart: number;
}

/** What this machine is; `tools` maps a name to the command line that prints its version. */
export function thisMachine(tools: Record<string, string[]>): Machine {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    tools: Object.fromEntries(Object.entries(tools).map(([name, command]) => [name, versionOf(command)])),
    loadAtStart: Number((loadavg()[0] ?? 0).toFixed(1)),
  };
}

/** When and where figures were taken, for the line above them; without a full stop. `at`: ISO 8601. */
export function takenOn(at: string, { cpu, cores, memoryGiB, kernel, node, tools, loadAtStart }: Machine): string {
  const versions = Object.entries(tools).map(([name, version]) => `, ${name} ${version}`);
  return `Taken ${at.slice(0, 10)} on ${cpu}, ${cores} cores, ${memoryGiB} GiB, Linux ${kernel}, Node ${node}${versions.join('')}; load ${loadAtStart} at the start`;
}

/** What is to be said of figures that were taken beside other work, after a full stop; nothing of others. */
export function busyNote({ loadAtStart, cores }: Machine, so = 'these numbers are too high'): string {
  return loadAtStart > cores / 2 ? ` **The machine was busy with other work: ${so}.**` : '';
}

/** The first number with a point in what the command prints. */
function versionOf([file = '', ...args]: string[]): string {
  try {
    const text = execFileSync('sh', ['-c', '"$@" 2>&1 || true', 'sh', file, ...args], {
      encoding: 'utf8',
      timeout: 5000,
    });
    return /\d+\.\d+(?:\.\d+)?/.exec(text)?.[0] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
