import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Conversation, readDataset } from '../../bench/memory-quality/dataset.ts';
import { judgedTable, runJudged } from '../../bench/memory-quality/judged.ts';

/** The scripted model makes one record of each. */
const turnsOf = ({ sessions }: Conversation): number => sessions.flat().length;

const SMALL = join(import.meta.dirname, '../../bench/memory-quality/small.json');

it('the quality harness ingests, extracts, retrieves, answers and judges its small dataset with a scripted model', async () => {
  const conversations = await readDataset(SMALL);
  const judged = await runJudged({
    conversations,
    topK: 5,
    modelUrl: undefined,
    model: 'unused',
    judgeUrl: undefined,
    judge: 'unused',
    key: undefined,
    embeddings: undefined,
    quietMs: 500,
    expected: turnsOf,
  });
  const questions = conversations.flatMap((one) => one.questions).length;
  const turns = conversations.reduce((sum, one) => sum + turnsOf(one), 0);
  expect(judged).toMatchObject({ questions, records: turns, failedJobs: 0, topK: 5, model: 'scripted' });
  // By words alone and with no model to speak of; what matters is that some are right and some are wrong.
  expect(judged.score).toBeGreaterThan(0.2);
  expect(judged.score).toBeLessThan(1);
  expect(judged.tokensPerQuestion).toBe(2);
  const table = judgedTable('small', judged);
  expect(table).toContain('| scripted | scripted | none (by words) | 5 |');
}, 300_000);
