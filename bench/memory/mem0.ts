import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { runChild } from '../support/child.ts';
import { percentile } from '../support/statistics.ts';
import type { ModelServer } from './model-server.ts';
import type { Timed } from './results.ts';

export interface Mem0Results {
  version: string;
  written: Timed;
  inferred: Timed;
  /** Embedding of a query alone, through the same service. */
  embedding: Timed;
  whole: Timed;
  /** `whole` less the median of `embedding`. */
  searched: Timed;
}

export interface Mem0Task {
  dimensions: number;
  events: string[];
  inferred: string[];
  records: string[];
  queries: string[];
}

const PACKAGE = 'mem0ai==2.2.1';
const VENV = resolve(import.meta.dirname, '../../.cache/mem0-2.2.1');
const TIMEOUT_MS = 1_200_000;

/** Does the same with mem0. Undefined, said on stderr, where it cannot be installed. */
export async function runMem0(models: ModelServer, task: Mem0Task): Promise<Mem0Results | undefined> {
  type Said = Record<'written' | 'inferred' | 'embedding' | 'found', number[]> & { version: string; made: number };
  const found = await askMem0<Said>(join(import.meta.dirname, 'mem0_side.py'), models, task);
  if (found === undefined) return undefined;
  if (found.made === 0) throw new Error('mem0 made no memory of what it was told');
  const embedding = percentile(found.embedding, 0.5);
  return {
    version: found.version,
    written: timed(found.written),
    inferred: timed(found.inferred),
    embedding: timed(found.embedding),
    whole: timed(found.found),
    searched: timed(found.found.map((ms) => Math.max(0, ms - embedding))),
  };
}

/** What a script with `mem0_memory.py` prints of a task, in a directory of its own. Undefined, said on stderr, where mem0 cannot be installed. */
export async function askMem0<T>(
  script: string,
  models: Pick<ModelServer, 'url'>,
  task: object,
): Promise<T | undefined> {
  const python = await mem0Python();
  if (python === undefined) return undefined;
  const directory = await mkdtemp(join(tmpdir(), 'agentplatform-mem0-'));
  try {
    return JSON.parse(await pipe(python, [script], JSON.stringify({ ...task, url: models.url, directory }))) as T;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export function timed(times: readonly number[]): Timed {
  const sum = times.reduce((total, ms) => total + ms, 0);
  return {
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    perSecond: Math.round((times.length / sum) * 1000),
  };
}

/** The Python of an environment that has mem0. Undefined, said on stderr, where it cannot be installed. */
async function mem0Python(): Promise<string | undefined> {
  const python = join(VENV, 'bin/python');
  if (existsSync(join(VENV, 'installed'))) return python;
  try {
    await runChild('python3', ['-m', 'venv', VENV], 120_000);
    await runChild(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PACKAGE], 600_000);
    await mkdir(join(VENV, 'installed'));
    return python;
  } catch (error) {
    process.stderr.write(`Without mem0: ${PACKAGE} cannot be installed (${String(error).slice(0, 300)})\n`);
    return undefined;
  }
}

/** What the program prints, given that input. Rejects with what it said when it fails. */
function pipe(file: string, args: string[], input: string): Promise<string> {
  return new Promise((resolvePipe, reject) => {
    // For scripts of another folder, too.
    const env = { ...process.env, PYTHONPATH: import.meta.dirname };
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: TIMEOUT_MS, env });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err = (err + text).slice(-4000);
    });
    child.on('error', reject);
    child.on('close', (status) =>
      status === 0 ? resolvePipe(out) : reject(new Error(`mem0 ended with ${status}: ${err}`)),
    );
    child.stdin.end(input);
  });
}
