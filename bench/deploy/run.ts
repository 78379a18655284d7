import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { packageCode } from '../../packages/cli/src/package/package-code.ts';
import { requireProject } from '../../packages/cli/src/project/load-project.ts';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { invokeJson } from '../../tests/support/invoke.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { busyNote, takenOn, thisMachine } from '../support/machine.ts';
import { median } from '../support/statistics.ts';

const AGENT = join(import.meta.dirname, 'agent');
const CLI = resolve(import.meta.dirname, '../../packages/cli/src/main.ts');
/** What a deploy after an edit of one line may take (issue of the first day). */
const MOST_MS = 3000;
/** What `agentcore deploy` says when a step is done. */
const STEPS = { packed: /^Packaging and uploading:/, made: /^(?:Creating|Updating) the agent runtime:/ };

/** One deploy, in milliseconds. */
interface Taken {
  /** Of the folder into a zip, by itself and before the deploy; undefined for the first one, which has pip to run. */
  packaging: number | undefined;
  /** Start of the command, packaging and upload. */
  packed: number;
  /** The platform makes the version. */
  made: number;
  whole: number;
  /** Of a new session. */
  answered: number;
}

/**
 * `npm run bench -- deploy [--quick]`: how long `agentcore deploy` takes for a Python agent with a framework, at first and after edits of one line, phase
 * by phase. Fails where the median after an edit is above three seconds. Needs Python with pip.
 */
export async function run(args: string[]): Promise<void> {
  const edits = args.includes('--quick') ? 2 : 7;
  const machine = thisMachine({ python: ['python3', '--version'] });
  const folder = await mkdtemp(join(tmpdir(), 'bench-deploy-'));
  const platform = await startTestPlatform({ args: ['--log-level', 'warn'] });
  const clients = clientsOf(platform);
  try {
    await cp(AGENT, folder, { recursive: true });
    const place = { folder, env: platform.env, clients };
    const first = await deploy(0, place);
    const next: Taken[] = [];
    for (let edit = 1; edit <= edits; edit += 1) next.push(await deploy(edit, place));
    process.stdout.write(
      `${takenOn(new Date().toISOString(), machine)}, ${loadavg()[0]?.toFixed(1)} at the end.${busyNote(machine)}\n${table(first, next)}\n`,
    );
    if (median(next.map(({ whole }) => whole)) > MOST_MS) process.exitCode = 1;
  } finally {
    clients.close();
    await platform.dispose();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Place {
  folder: string;
  env: Record<string, string>;
  clients: Clients;
}

async function deploy(edit: number, { folder, env, clients }: Place): Promise<Taken> {
  const main = join(folder, 'main.py');
  await writeFile(main, (await readFile(main, 'utf8')).replace(/^EDIT = .*$/m, `EDIT = ${edit}`));
  const packaging = edit === 0 ? undefined : await timed(async () => void (await pack(folder)));
  const began = performance.now();
  const child = spawn(process.execPath, [CLI, 'deploy', '--json'], {
    ...{ cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
    env: { ...process.env, ...env },
  });
  const closed = once(child, 'close');
  const at = { packed: began, made: began };
  let said = '';
  let answer = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    answer += text;
  });
  for await (const line of createInterface({ input: child.stderr })) {
    said += `${line}\n`;
    for (const [step, done] of Object.entries(STEPS))
      if (done.test(line)) at[step as keyof typeof at] = performance.now();
  }
  const [status] = await closed;
  const whole = performance.now() - began;
  if (status !== 0) throw new Error(`the deploy failed:\n${said}`);
  const { agentRuntimeArn } = JSON.parse(answer) as { agentRuntimeArn: string };
  const answered = await timed(async () => {
    // Another edit would be an old version's.
    const told = await invokeJson(clients, agentRuntimeArn, randomUUID(), {});
    if (told.edit !== edit) throw new Error(`deploy ${edit} answers as ${told.edit}`);
  });
  return { packaging, packed: at.packed - began, made: at.made - at.packed, whole, answered };
}

async function pack(folder: string): Promise<void> {
  await using _ = await packageCode(await requireProject(folder), { signal: new AbortController().signal });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function table(first: Taken, next: Taken[]): string {
  const row = (name: string, of: (taken: Taken) => number | undefined): string => {
    const [one, ...others] = [first, ...next].map((taken) => of(taken));
    const later = others.filter((value) => value !== undefined);
    return `| ${name} | ${one === undefined ? '' : `${Math.round(one)} ms`} | ${Math.round(median(later))} ms | ${Math.round(Math.max(...later))} ms |`;
  };
  return [
    `| agentcore deploy, Python with Strands | first | median of ${next.length} after an edit | longest |`,
    '|---|---|---|---|',
    row('(packaging alone)', ({ packaging }) => packaging),
    row('start of the command, packaging and upload', ({ packed }) => packed),
    row('the platform makes the version', ({ made }) => made),
    row('**whole command**', ({ whole }) => whole),
    row('then the first answer of a new session', ({ answered }) => answered),
  ].join('\n');
}
