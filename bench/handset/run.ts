import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { browserRuntime } from '../../packages/handset/tools/copy-vendor.ts';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn, thisMachine } from '../support/machine.ts';
import { median, percentile, rounded } from '../support/statistics.ts';
import { installBrunch } from './brunch.ts';
import { compareBuilds, type FullBuilds, type Times, times } from './full-builds.ts';
import { nodesOfBench } from './nodes.ts';
import { publishTo } from './published.ts';
import { measureRebuilds, type Rebuilds } from './rebuilds.ts';
import { FORTY_SIX, fileCount, TWO_THOUSAND, writeSampleApp } from './sample-app.ts';
import { startWatch } from './watching.ts';

const BUILD_AIM = 'at most 500 ms and 0.4 ×';
const FULL = { builds: 15, saves: 60, starts: 9 };
const QUICK = { builds: 3, saves: 10, starts: 2 };

interface HandsetResults {
  readonly at: string;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly files: number;
  readonly fullBuilds: readonly FullBuilds[];
  readonly oneFile: {
    readonly outputP95: number;
    readonly outputMedian: number;
    readonly pageP95: number;
    readonly pageMedian: number;
  };
  readonly manyFiles: { readonly files: number; readonly outputP95: number; readonly outputMedian: number };
  readonly coldStart: Times;
}

const scaffold = fileURLToPath(new URL('../../packages/handset/scaffold/', import.meta.url));
const resultsFile = fileURLToPath(new URL('../results/handset.json', import.meta.url));
const docsPage = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/**
 * `npm run bench -- handset [--quick] [--keep]`: full builds beside Brunch 4.0.2 on Node 20 and 24, rebuild after a save, 2,000 files, cold start.
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
    const fullBuilds: FullBuilds[] = [];
    for (const node of await nodesOfBench(folder)) {
      say(`Full builds on Node ${node.version}, in turn …`);
      const contestants = [
        { root: ours, program: handset },
        { root: peer, program: brunch },
      ] as const;
      fullBuilds.push(await compareBuilds(node, ...contestants, size.builds));
    }
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
      files: fileCount(FORTY_SIX),
      fullBuilds,
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

function table({ files, fullBuilds, oneFile, manyFiles, coldStart }: HandsetResults): string {
  const both = ({ median: m, least }: Times): string => `${m} ms (least ${least})`;
  const rows = [
    ...fullBuilds.flatMap(({ node, nothingKnown, again, brunch, ratios }) => [
      [
        `Node ${node}: full build, ${files} files, wall`,
        both(nothingKnown.wall),
        both(brunch.wall),
        `${ratios.wall} ×`,
        BUILD_AIM,
      ],
      [`Node ${node}: the same, processor`, both(nothingKnown.cpu), both(brunch.cpu), `${ratios.cpu} ×`, '0.4 ×'],
      [
        `Node ${node}: again, public/ removed, wall`,
        both(again.wall),
        both(brunch.wall),
        `${ratios.wallAgain} ×`,
        BUILD_AIM,
      ],
      [`Node ${node}: the same, processor`, both(again.cpu), both(brunch.cpu), `${ratios.cpuAgain} ×`, '0.4 ×'],
    ]),
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
    '| measure | handset | Brunch 4.0.2, or median | ratio | aim |',
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
    'Full builds are whole processes with their children, from start to exit, both in development mode with source maps, one in turn with the',
    'other, and both with CoffeeScript 1.12.7 and Pug 3.0.4, so that the assemblers are compared and not the compilers. In the rows *again*',
    '`.handset/` was kept, so that sources whose content is known are not compiled again; Brunch keeps nothing of an application. The compiled form of both',
    'programs and of their compilers is kept, where the first, unmeasured build put it: by handset in its own cache, for Brunch by `NODE_COMPILE_CACHE` on Node 24',
    'and by `v8-compile-cache` 2.4.0 on Node 20, which has no such variable. A refreshed page is one whose new script has run in Chromium.',
  ].join('\n');
  await mkdir(path.dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  await writeFile(docsPage, withSection(await readFile(docsPage, 'utf8'), 'handset', section));
}
