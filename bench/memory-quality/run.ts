import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openLocalEmbedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { jobMigrations } from '../../packages/platform/src/kernel/jobs/index.ts';
import { VectorIndex } from '../../packages/platform/src/kernel/search/index.ts';
import { migrate, openDatabase, storageMigrations } from '../../packages/platform/src/kernel/storage/index.ts';
import { memoryMigrations } from '../../packages/platform/src/services/memory/index.ts';
import { recordTable } from '../../packages/platform/src/services/memory/record-table.ts';
import { readDataset } from './dataset.ts';
import { judgedTable, runJudged } from './judged.ts';
import { keepTurns, measureRecall } from './recall.ts';

const KS = [1, 3, 5, 10];
const SMALL = join(import.meta.dirname, 'small.json');

/**
 * `npm run bench -- memory-quality [--file dataset.json] [--model directory] [--end-to-end …]`: recall@k of the evidence of a LoCoMo or
 * LongMemEval file, by words, by meaning and by both. Without a file it takes the project's own small one; without a model
 * it searches by words alone. `--end-to-end` also ingests, extracts, retrieves, answers and judges, through the real server, with
 * the models of `--chat-url URL --chat NAME [--judge-url URL] [--judge NAME] [--top-k 10]` (key in MEMORY_QUALITY_KEY) or, without
 * them, a scripted one that shows only that the harness works.
 */
export async function run(args: string[]): Promise<void> {
  const option = (name: string): string | undefined => {
    const at = args.indexOf(name);
    return at < 0 ? undefined : args[at + 1];
  };
  const file = option('--file') ?? SMALL;
  const directory = option('--model');
  const conversations = await readDataset(file);
  const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-quality-'));
  const log = pino({ level: 'silent' });
  const database = await openDatabase({ dataDir, log });
  const embedder = directory === undefined ? undefined : await openLocalEmbedder({ directory, clock: systemClock });
  const vectors = embedder && new VectorIndex({ database, table: recordTable, embedder, clock: systemClock, log });
  try {
    await migrate(database, [...storageMigrations, ...jobMigrations, ...memoryMigrations], log);
    const turns = await keepTurns(database, conversations);
    await vectors?.start();
    if (vectors) await untilEmbedded();
    const found = await measureRecall(database, vectors, conversations, KS);
    const questions = conversations.flatMap((each) =>
      each.questions.filter(({ evidence }) => evidence.length > 0),
    ).length;
    const out = [
      `${file === SMALL ? 'small.json' : file}: ${turns} turns, ${questions} questions, embeddings ${embedder?.model ?? 'none'}`,
      `| search | ${KS.map((k) => `recall@${k}`).join(' | ')} | median ms |`,
      `|---|${KS.map(() => '---|').join('')}---|`,
      ...found.map(({ way, recallAt, medianMs }) => {
        const shares = KS.map((k) => recallAt[k]?.toFixed(3));
        return `| ${way} | ${shares.join(' | ')} | ${medianMs.toFixed(1)} |`;
      }),
    ];
    process.stdout.write(`${out.join('\n')}\n`);
    if (args.includes('--end-to-end')) {
      const judged = await runJudged({
        conversations,
        topK: Number(option('--top-k') ?? 10),
        modelUrl: option('--chat-url'),
        model: option('--chat') ?? 'gpt-4.1-mini',
        judgeUrl: option('--judge-url'),
        judge: option('--judge') ?? option('--chat') ?? 'gpt-4.1-mini',
        key: process.env.MEMORY_QUALITY_KEY,
        embeddings: directory,
        quietMs: 5000,
      });
      process.stdout.write(`\n${judgedTable(file === SMALL ? 'small.json' : file, judged)}\n`);
    }
  } finally {
    await vectors?.stop();
    await embedder?.close();
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  }

  async function untilEmbedded(): Promise<void> {
    for (;;) {
      const left = await database.query('SELECT 1 FROM memory_records WHERE needs_vector LIMIT 1');
      if (left.length === 0) return;
      await sleep(200);
    }
  }
}
