import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { type Embedder, openLocalEmbedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { jobMigrations } from '../../packages/platform/src/kernel/jobs/index.ts';
import { meteringMigrations } from '../../packages/platform/src/kernel/metering/index.ts';
import { VectorIndex } from '../../packages/platform/src/kernel/search/index.ts';
import { migrate, openDatabase, storageMigrations } from '../../packages/platform/src/kernel/storage/index.ts';
import { memoryMigrations } from '../../packages/platform/src/services/memory/index.ts';
import { recordTable } from '../../packages/platform/src/services/memory/record-table.ts';
import { startModelServer } from '../memory/model-server.ts';
import { type Conversation, readDataset, readParaphrases } from './dataset.ts';
import { extractionTable } from './extraction-table.ts';
import { judgedTable, runJudged } from './judged.ts';
import { measureMem0 } from './mem0.ts';
import { keepTurns, measureRecall, POOL, recallTable } from './recall.ts';

const KS = [1, 3, 5, 10];
const PARAPHRASES = join(import.meta.dirname, 'paraphrases.tsv');
const LOCOMO = {
  from: 'data/locomo10.json of github.com/snap-research/locomo at 3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376',
  sha256: '79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4',
};
/** Questions whose answer is not in the conversation: there is nothing to be found. */
const ADVERSARIAL = '5';

/** Questions, and where they come from. */
interface Measured {
  name: string;
  conversations: Conversation[];
  /** What was tuned on it is not compared by it. */
  chosenOn?: true;
}

/**
 * `npm run bench -- memory-quality [--file dataset.json] [--model directory] [--no-mem0] [--details] [--end-to-end …]`: what rules make of forty labelled
 * conversations, and how much of the evidence of questions is found by words, by meaning and by both: of sixty paraphrases, and of the file, which
 * is LoCoMo's (the half that the fusion was chosen on, and the other) or in its format or LongMemEval's. Without a model it searches by words
 * alone. With one, mem0 (PyPI) searches the halves that nothing was chosen on, by the same embeddings. `--details` names what the rules missed. `--end-to-end` also ingests the file, extracts, retrieves, answers and judges, through the real
 * server, with the models of `--chat-url URL --chat NAME [--judge-url URL] [--judge NAME] [--top-k 10]` (key in MEMORY_QUALITY_KEY) or, without
 * them, a scripted one that shows only that the harness works.
 */
export async function run(args: string[]): Promise<void> {
  const option = (name: string): string | undefined => {
    const at = args.indexOf(name);
    return at < 0 ? undefined : args[at + 1];
  };
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const file = option('--file');
  const directory = option('--model');
  const measured: Measured[] = halves('sixty paraphrases', [await readParaphrases(PARAPHRASES)]);
  if (file === undefined)
    say(
      `Without --file the sixty paraphrases alone are searched. LoCoMo's file is ${LOCOMO.from} (sha256 ${LOCOMO.sha256}).`,
    );
  else measured.push(...(await readFrom(file)));
  const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-quality-'));
  const log = pino({ level: 'silent' });
  const database = await openDatabase({ dataDir, log });
  const opened = directory === undefined ? undefined : await openLocalEmbedder({ directory, clock: systemClock });
  const embedder = opened && remembering(opened);
  const models = embedder && (await startModelServer(embedder, () => '[]'));
  const vectors = embedder && new VectorIndex({ database, table: recordTable, embedder, clock: systemClock, log });
  try {
    await migrate(database, [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations], log);
    say(`\nFacts by rules, of conversations with labels (share and 95 % interval):\n`);
    say(await extractionTable(database, log, args.includes('--details')));
    await database.execute('DELETE FROM memory_records');
    await vectors?.start();
    for (const { name, conversations, chosenOn } of measured) {
      const turns = await keepTurns(database, name, conversations);
      vectors?.wake();
      if (vectors) await untilEmbedded(turns);
      const found = await measureRecall(database, vectors, name, conversations, KS);
      if (embedder && models && !chosenOn && !args.includes('--no-mem0')) {
        const { dimensions } = embedder;
        const peer = await measureMem0({ models, dimensions, conversations, ks: KS, limit: POOL });
        if (peer) found.push(peer);
      }
      const questions = found[0]?.reciprocalRanks.length ?? 0;
      say(`\n${name}: ${turns} turns, ${questions} questions, embeddings ${embedder?.model ?? 'none'}\n`);
      say(recallTable(found));
    }
    if (args.includes('--end-to-end')) {
      const judged = await runJudged({
        conversations: await readDataset(file ?? join(import.meta.dirname, 'small.json')),
        topK: Number(option('--top-k') ?? 10),
        modelUrl: option('--chat-url'),
        model: option('--chat') ?? 'gpt-4.1-mini',
        judgeUrl: option('--judge-url'),
        judge: option('--judge') ?? option('--chat') ?? 'gpt-4.1-mini',
        key: process.env.MEMORY_QUALITY_KEY,
        embeddings: directory,
        quietMs: 5000,
      });
      say(`\n${judgedTable(file ?? 'small.json', judged)}`);
    }
  } finally {
    await vectors?.stop();
    await models?.close();
    await embedder?.close();
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  }

  async function untilEmbedded(turns: number): Promise<void> {
    for (let shown = ''; ; await sleep(200)) {
      const [row] = await database.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM memory_records WHERE needs_vector',
      );
      const left = row?.n ?? 0;
      if (left === 0) return;
      const now = `${Math.floor((1 - left / Math.max(turns, left)) * 10) * 10} %`;
      if (now !== shown) process.stderr.write(`… vectors of ${turns} turns, ${now}\n`);
      shown = now;
    }
  }
}

/** Embeds each text once, whoever asks. */
function remembering(embedder: Embedder): Embedder {
  const known = new Map<string, Float32Array>();
  return {
    ...{ model: embedder.model, dimensions: embedder.dimensions, close: () => embedder.close() },
    async embed(texts, signal) {
      const missing = [...new Set(texts)].filter((text) => !known.has(text));
      const made = missing.length === 0 ? [] : await embedder.embed(missing, signal);
      for (const [index, vector] of made.entries()) known.set(missing[index] ?? '', vector);
      return texts.map((text) => {
        const vector = known.get(text);
        if (!vector) throw new Error(`the model gave no vector for ${text.slice(0, 100)}`);
        return vector;
      });
    },
  };
}

/** The file in halves where it is LoCoMo's; whole, and called by its hash, where it is another. */
async function readFrom(file: string): Promise<Measured[]> {
  const sha256 = createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
  const conversations = (await readDataset(file)).map((one) => ({
    ...one,
    questions: one.questions.filter(({ category }) => category !== ADVERSARIAL),
  }));
  if (sha256 === LOCOMO.sha256) return halves(`LoCoMo (${LOCOMO.from})`, conversations);
  return [{ name: `${file} (sha256 ${sha256}, not the known file of LoCoMo)`, conversations }];
}

/** The half that the fusion was chosen on, and the one that shows it: every second conversation, or question where there is one alone. */
function halves(name: string, conversations: Conversation[]): Measured[] {
  return ['chosen on', 'shown on'].map((use, half) => {
    const ours = <T>(all: T[]): T[] => all.filter((_, index) => index % 2 === half);
    const [only] = conversations;
    const part =
      conversations.length === 1 && only ? [{ ...only, questions: ours(only.questions) }] : ours(conversations);
    return { name: `${name}, the half ${use}`, conversations: part, ...(half === 0 ? { chosenOn: true } : {}) };
  });
}
