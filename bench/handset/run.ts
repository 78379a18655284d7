import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { browserRuntime } from '../../packages/handset/tools/copy-vendor.ts';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn, thisMachine } from '../support/machine.ts';
import { median, percentile, rounded } from '../support/statistics.ts';
import { installBrunch } from './brunch.ts';
import { publishTo } from './published.ts';
import { measureRebuilds, type Rebuilds } from './rebuilds.ts';
import { FORTY_SIX, fileCount, TWO_THOUSAND, writeSampleApp } from './sample-app.ts';
import { startWatch } from './watching.ts';

const FULL = { builds: 15, saves: 60, starts: 9 };
const QUICK = { builds: 3, saves: 10, starts: 2 };

interface HandsetResults {
  readonly at: string;
  readonly quick: boolean;
  readonly machine: Machine;
  /** Milliseconds of whole processes, from start to exit, medians; the fastest runs tell what a quiet machine gives. */
  readonly fullBuild: {
    readonly files: number;
    readonly handset: Times;
    /** The same with public/ removed and `.handset/` kept: sources whose content is known are not compiled again. */
    readonly again: Times;
    readonly brunch: Times;
    readonly ratio: number;
    readonly ratioAgain: number;
  };
  readonly oneFile: {
    readonly outputP95: number;
    readonly outputMedian: number;
    readonly pageP95: number;
    readonly pageMedian: number;
  };
  readonly manyFiles: { readonly files: number; readonly outputP95: number; readonly outputMedian: number };
  readonly coldStart: Times;
}

interface Times {
  readonly median: number;
  readonly least: number;
}

const execute = promisify(execFile);
const scaffold = fileURLToPath(new URL('../../packages/handset/scaffold/', import.meta.url));
const resultsFile = fileURLToPath(new URL('../results/handset.json', import.meta.url));
const docsPage = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/**
 * `npm run bench -- handset [--quick] [--keep]`: full build beside Brunch 4.0.2, rebuild after a save, 2,000 files, cold start.
 * Prints a table; `--keep` writes bench/results/handset.json and the section of docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const size = args.includes('--quick') ? QUICK : FULL;
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-handset-'));
  const machine = thisMachine({ chromium: ['chromium', '--version'] });
  try {
    const files = { runtime: browserRuntime(), icon: await readFile(path.join(scaffold, 'app/assets/icon.png')) };
    const [ours, peer, many] = ['handset', 'brunch', 'many'].map((name) => path.join(folder, name));
    if (!ours || !peer || !many) return;
    for (const root of [ours, peer]) await writeSampleApp(root, FORTY_SIX, files);
    await writeSampleApp(many, TWO_THOUSAND, files);
    say('Building handset as it is published …');
    const handset = await publishTo(path.join(folder, 'published'));
    say('Installing Brunch 4.0.2 in a temporary folder …');
    const brunch = await installBrunch(peer);
    say('Full builds, in turn …');
    const fullBuild = await compareBuilds(
      { root: ours, program: handset },
      { root: peer, program: brunch },
      size.builds,
    );
    say('Saves of one file …');
    const one = await measureRebuilds(handset, ours, size.saves);
    say('Saves of one file among 2,000 …');
    const among = await measureRebuilds(handset, many, size.saves);
    say('Cold starts …');
    const coldStart = await measureStarts(handset, ours, size.starts);
    const results: HandsetResults = {
      at: new Date().toISOString(),
      quick: size === QUICK,
      machine: { ...machine, tools: { ...machine.tools, brunch: '4.0.2' } },
      fullBuild,
      oneFile: summary(one),
      manyFiles: {
        files: fileCount(TWO_THOUSAND),
        outputP95: summary(among).outputP95,
        outputMedian: summary(among).outputMedian,
      },
      coldStart,
    };
    process.stdout.write(`${table(results)}\n`);
    if (args.includes('--keep')) await keep(results);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Contestant {
  readonly root: string;
  readonly program: string;
}

/** One build each in turn, so that both meet the same noise; outputs of the build before are removed. */
async function compareBuilds(ours: Contestant, peer: Contestant, builds: number): Promise<HandsetResults['fullBuild']> {
  const handset: number[] = [];
  const again: number[] = [];
  const other: number[] = [];
  const time = async ({ root, program }: Contestant, keep = false): Promise<number> => {
    await rm(path.join(root, 'public'), { recursive: true, force: true });
    if (!keep) await rm(path.join(root, '.handset'), { recursive: true, force: true });
    const start = performance.now();
    await execute(process.execPath, [program, 'build'], { cwd: root });
    const took = performance.now() - start;
    // A build that made nothing would be the fastest.
    const app = await readFile(path.join(root, 'public/javascripts/app.js'), 'utf8');
    if (!app.includes('List23') || !app.includes('range8')) throw new Error(`${program} did not build the application`);
    return took;
  };
  for (let i = -1; i < builds; i += 1) {
    const a = await time(ours);
    const c = await time(ours, true);
    const b = await time(peer);
    if (i < 0) continue;
    handset.push(a);
    again.push(c);
    other.push(b);
  }
  const to = (values: readonly number[]): number => rounded(median(values) / median(other), 3);
  return {
    files: fileCount(FORTY_SIX),
    handset: times(handset),
    again: times(again),
    brunch: times(other),
    ratio: to(handset),
    ratioAgain: to(again),
  };
}

async function measureStarts(handset: string, root: string, starts: number): Promise<Times> {
  const taken: number[] = [];
  for (let i = 0; i < starts; i += 1) {
    // Nothing known of the application, as on the first start after a clone.
    for (const made of ['public', '.handset']) {
      await rm(path.join(root, made), { recursive: true, force: true });
    }
    const watching = await startWatch(handset, root);
    taken.push(watching.firstServe);
    await watching.end();
  }
  return times(taken);
}

function summary({ toOutput, toPage }: Rebuilds): HandsetResults['oneFile'] {
  return {
    outputP95: rounded(percentile(toOutput, 0.95), 1),
    outputMedian: rounded(median(toOutput), 1),
    pageP95: rounded(percentile(toPage, 0.95), 1),
    pageMedian: rounded(median(toPage), 1),
  };
}

function times(values: readonly number[]): Times {
  return { median: rounded(median(values), 0), least: rounded(Math.min(...values), 0) };
}

function table({ fullBuild, oneFile, manyFiles, coldStart }: HandsetResults): string {
  const both = ({ median: m, least }: Times): string => `${m} ms (least ${least})`;
  const rows = [
    [
      `Full build, ${fullBuild.files} files, nothing known`,
      both(fullBuild.handset),
      `Brunch 4.0.2 ${both(fullBuild.brunch)}`,
      `${fullBuild.ratio} ×`,
      'at most 500 ms and 0.4 ×',
    ],
    [
      'Full build again, public/ removed',
      both(fullBuild.again),
      `Brunch 4.0.2 ${both(fullBuild.brunch)}`,
      `${fullBuild.ratioAgain} ×`,
      'the same',
    ],
    [
      'One file, save to output, p95',
      `${oneFile.outputP95} ms`,
      `median ${oneFile.outputMedian} ms`,
      '',
      'at most 50 ms',
    ],
    [
      'One file, save to refreshed page, p95',
      `${oneFile.pageP95} ms`,
      `median ${oneFile.pageMedian} ms`,
      '',
      'at most 150 ms',
    ],
    [
      `One of ${manyFiles.files} files, save to output, p95`,
      `${manyFiles.outputP95} ms`,
      `median ${manyFiles.outputMedian} ms`,
      '',
      'at most 100 ms',
    ],
    ['Cold start of `watch --server` to first page', both(coldStart), '', '', 'below 1500 ms'],
  ];
  return [
    '| measure | handset | peer or median | ratio | aim |',
    '|---|---|---|---|---|',
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
}

async function keep(results: HandsetResults): Promise<void> {
  const section = [
    `${takenOn(results.at, results.machine)}.${busyNote(results.machine)}`,
    '',
    table(results),
    '',
    'Full builds are whole processes from start to exit, both in development mode with source maps, one in turn with the other, and both with',
    'CoffeeScript 1.12.7 and Pug 3.0.4, so that the assemblers are compared and not the compilers. In the second row `.handset/` was kept,',
    'so that sources whose content is known are not compiled again; Brunch keeps nothing. In both rows the machine form of handset’s',
    'program and compilers is in its own cache, where the first, unmeasured build put it: nothing of an application is in it. A refreshed page is one whose',
    'new script has run in Chromium.',
  ].join('\n');
  await mkdir(path.dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  await writeFile(docsPage, withSection(await readFile(docsPage, 'utf8'), 'handset', section));
}
