import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { embeddingModel } from '../../tests/support/embedding-model.ts';
import { type Machine, takenOn, thisMachine } from '../support/machine.ts';
import { type Budget, budgets, serviceBudget } from './budgets.ts';
import { type EmbeddingsFootprint, measureEmbeddings } from './measured-embeddings.ts';
import { measurePieces, type PiecesFootprint } from './measured-pieces.ts';
import { measureStart, type StartFootprint } from './measured-start.ts';

interface FootprintResults {
  readonly at: string;
  readonly machine: Machine;
  /** What the platform was started with, besides its data directory and port. */
  readonly args: readonly string[];
  /** Of the first start of a checkout, which makes the database that later ones copy; of one on new data; of one on that data again. */
  readonly first: StartFootprint;
  readonly fresh: StartFootprint;
  readonly again: StartFootprint;
  /** Absent where the model could not be had. */
  readonly embeddings?: EmbeddingsFootprint;
  readonly pieces: PiecesFootprint;
}

const resultsFile = fileURLToPath(new URL('../results/footprint.json', import.meta.url));
const docsPage = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/**
 * `npm run bench -- footprint [--keep] [options of the platform]`: resident memory of the platform at rest and at its start, and of its pieces,
 * beside what each may take. Prints tables; `--keep` writes bench/results/footprint.json and the section of docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const options = args.filter((word) => word !== '--keep');
  const folder = await mkdtemp(join(tmpdir(), 'bench-footprint-'));
  const [cache, one, other] = ['cache', 'one', 'other'].map((name) => join(folder, name)) as [string, string, string];
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  try {
    const machine = thisMachine({});
    say('The first start of a checkout …');
    const first = await measureStart(one, cache, options);
    say('A start on new data …');
    const fresh = await measureStart(other, cache, options);
    say('A start on that data …');
    const again = await measureStart(other, cache, options);
    say('Embeddings …');
    const model = await embeddingModel();
    say('Pieces …');
    const pieces = await measurePieces();
    const results: FootprintResults = {
      at: new Date().toISOString(),
      machine,
      args: options,
      first,
      fresh,
      again,
      pieces,
      ...(model === undefined ? {} : { embeddings: await measureEmbeddings(model) }),
    };
    process.stdout.write(`${tables(results)}\n`);
    if (args.includes('--keep')) await keep(results);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
/** The server's, and of the supervisor what is its own: Node's program is there once for both. */
const both = ({ server, supervisor }: StartFootprint['idle'], of: 'resident' | 'peak'): number =>
  server[of] + supervisor.anonymous;

function tables({ first, fresh, again, embeddings, pieces }: FootprintResults): string {
  const starts = [first, fresh, again];
  const row = (name: string, of: (start: StartFootprint) => string): string =>
    `| ${[name, ...starts.map(of)].join(' | ')} |`;
  const idle = Math.max(...starts.map((start) => both(start.idle, 'resident')));
  const peak = Math.max(...starts.map((start) => both(start.idle, 'peak')));
  return [
    '| memory of | first start of a checkout | new data | second start |',
    '|---|---|---|---|',
    row(
      'server + what is the supervisor’s own, ready',
      ({ ready }) => `${mb(ready.server.resident)} + ${mb(ready.supervisor.anonymous)}`,
    ),
    row(
      'the server at its most + the same',
      ({ idle: at }) => `${mb(at.server.peak)} + ${mb(at.supervisor.anonymous)}`,
    ),
    row('the same, 30 s later', ({ idle: at }) => `${mb(at.server.resident)} + ${mb(at.supervisor.anonymous)}`),
    row('– of the server’s: files, shared with any Node', ({ idle: at }) => mb(at.server.files)),
    row('– its JavaScript, live of all', ({ heap }) => `${mb(heap.used)} of ${mb(heap.total)}`),
    row('– the database’s own memory', ({ database }) => mb(database)),
    row('– the rest: compiled code, the other threads’ heaps, buffers', ({ idle: at, heap, database }) =>
      mb(at.server.anonymous - heap.total - database),
    ),
    '',
    '| piece | at rest | may take | most | may take |',
    '|---|---|---|---|---|',
    budgetRow(budgets.platform, idle, peak),
    budgetRow(budgets.embeddings, embeddings?.long.resident, embeddings?.long.peak),
    budgetRow(budgets.policy, pieces.policy),
    ...Object.entries(pieces.services).map(([name, bytes]) => budgetRow(serviceBudget(name), bytes)),
  ].join('\n');
}

function budgetRow({ piece, idleMb, peakMb }: Budget, idle?: number, peak?: number): string {
  const beside = (measured: number | undefined, allowed: number | undefined): [string, string] => {
    const over = measured !== undefined && allowed !== undefined && measured > allowed * 1e6;
    const said = measured === undefined ? 'not measured' : mb(measured);
    return [over ? `**${said}**` : said, allowed === undefined ? '' : `${allowed} MB`];
  };
  return `| ${[piece, ...beside(idle, idleMb), ...(peakMb === undefined ? ['', ''] : beside(peak, peakMb))].join(' | ')} |`;
}

async function keep(results: FootprintResults): Promise<void> {
  const options = results.args.length === 0 ? '' : ` Started with \`${results.args.join(' ')}\`.`;
  const section = [`${takenOn(results.at, results.machine)}.${options}`, '', tables(results)].join('\n');
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  await writeFile(docsPage, withSection(await readFile(docsPage, 'utf8'), 'footprint', section));
}
