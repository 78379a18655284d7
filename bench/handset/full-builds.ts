import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { median, rounded } from '../support/statistics.ts';

const execute = promisify(execFile);

/** A program that builds the application in `root`. */
export interface Contestant {
  readonly root: string;
  readonly program: string;
}

/** A Node, and what makes Brunch keep its compiled form on it: handset has its own cache. */
export interface NodeOfBench {
  readonly version: string;
  readonly path: string;
  readonly peerArgs: readonly string[];
  readonly peerEnv: Readonly<Record<string, string>>;
}

export interface Times {
  readonly median: number;
  readonly least: number;
}

/** Milliseconds of whole processes with their children, from start to exit. */
export interface Cost {
  readonly wall: Times;
  readonly cpu: Times;
}

/** Full builds on one Node. Ratios are of medians, ours to Brunch's. */
export interface FullBuilds {
  readonly node: string;
  readonly nothingKnown: Cost;
  /** With public/ removed and `.handset/` kept: sources whose content is known are not compiled again. */
  readonly again: Cost;
  readonly brunch: Cost;
  readonly ratios: Readonly<Record<'wall' | 'cpu' | 'wallAgain' | 'cpuAgain', number>>;
}

interface Build {
  wall: number;
  cpu: number;
}

/** One build each in turn, so that both meet the same noise; outputs of the build before are removed. The first turn fills the caches and does not count. */
export async function compareBuilds(
  node: NodeOfBench,
  ours: Contestant,
  peer: Contestant,
  builds: number,
): Promise<FullBuilds> {
  const nothingKnown: Build[] = [];
  const again: Build[] = [];
  const brunch: Build[] = [];
  for (let i = -1; i < builds; i += 1) {
    const a = await build(node, ours);
    const c = await build(node, ours, 'again');
    const b = await build(node, peer, 'peer');
    if (i < 0) continue;
    nothingKnown.push(a);
    again.push(c);
    brunch.push(b);
  }
  const ratio = (of: readonly Build[], key: keyof Build): number =>
    rounded(median(of.map((one) => one[key])) / median(brunch.map((one) => one[key])), 3);
  return {
    node: node.version,
    nothingKnown: cost(nothingKnown),
    again: cost(again),
    brunch: cost(brunch),
    ratios: {
      wall: ratio(nothingKnown, 'wall'),
      cpu: ratio(nothingKnown, 'cpu'),
      wallAgain: ratio(again, 'wall'),
      cpuAgain: ratio(again, 'cpu'),
    },
  };
}

export function times(values: readonly number[]): Times {
  return { median: rounded(median(values), 0), least: rounded(Math.min(...values), 0) };
}

function cost(builds: readonly Build[]): Cost {
  return { wall: times(builds.map(({ wall }) => wall)), cpu: times(builds.map(({ cpu }) => cpu)) };
}

async function build(node: NodeOfBench, { root, program }: Contestant, kind?: 'again' | 'peer'): Promise<Build> {
  await rm(path.join(root, 'public'), { recursive: true, force: true });
  if (kind !== 'again') await rm(path.join(root, '.handset'), { recursive: true, force: true });
  const peer = kind === 'peer';
  const command = [node.path, ...(peer ? node.peerArgs : []), program, 'build'];
  const took = await timed(command, root, peer ? node.peerEnv : {});
  // A build that made nothing would be the fastest.
  const app = await readFile(path.join(root, 'public/javascripts/app.js'), 'utf8');
  if (!app.includes('List23') || !app.includes('range8')) throw new Error(`${program} did not build the application`);
  return took;
}

/** The shell tells what a command and all its children took, which Node does not. */
async function timed(command: readonly string[], cwd: string, more: Readonly<Record<string, string>>): Promise<Build> {
  const { stderr } = await execute('bash', ['-c', 'TIMEFORMAT="took %3R %3U %3S"; time "$@"', 'bash', ...command], {
    cwd,
    env: { ...process.env, LC_ALL: 'C', ...more },
  });
  const [, wall, user, system] = /took (\S+) (\S+) (\S+)\s*$/.exec(stderr) ?? [];
  if (wall === undefined) throw new Error(`The shell did not tell the time:\n${stderr}`);
  return { wall: Number(wall) * 1000, cpu: (Number(user) + Number(system)) * 1000 };
}
