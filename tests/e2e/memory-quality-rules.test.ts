import { join } from 'node:path';
import { expect, it } from 'vitest';
import { figuresOf, type Judged, judgeExtraction } from '../../bench/memory-quality/extraction.ts';
import { readLabelled } from '../../bench/memory-quality/labelled.ts';
import { jobMigrations } from '../../packages/platform/src/kernel/jobs/index.ts';
import { meteringMigrations } from '../../packages/platform/src/kernel/metering/index.ts';
import { storageMigrations } from '../../packages/platform/src/kernel/storage/index.ts';
import { describeDatabases, silent } from '../../packages/platform/src/kernel/storage/testing/databases.ts';
import type { Extractor } from '../../packages/platform/src/services/memory/extraction/candidate.ts';
import { localExtractor } from '../../packages/platform/src/services/memory/extraction/local-extractor.ts';
import { memoryMigrations } from '../../packages/platform/src/services/memory/index.ts';

const HELD_OUT = join(import.meta.dirname, '../../bench/memory-quality/conversations/held-out.txt');

describeDatabases(
  'memory by rules',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
    const figures = async (extractor: Extractor) => {
      const judged: Judged[] = [];
      for (const one of await readLabelled(HELD_OUT))
        judged.push(await judgeExtraction(database(), silent, extractor, one));
      return figuresOf(judged);
    };

    it('finds nine facts of ten that it was not tuned on, with one record of twenty in vain, and takes half of the corrections', async () => {
      const { facts, records, found, junk, stale, corrections, corrected } = await figures(localExtractor);
      expect(found / facts).toBeGreaterThanOrEqual(0.9);
      expect(junk / records).toBeLessThanOrEqual(0.05);
      expect(stale / records).toBeLessThanOrEqual(0.05);
      expect(corrected / corrections).toBeGreaterThanOrEqual(0.5);
      // The control: who keeps everything is found out.
      const everything: Extractor = {
        ...localExtractor,
        facts: async ({ messages }) => ({
          candidates: messages.map(({ text, at, eventId }) => ({ content: text, at, eventIds: [eventId] })),
          unread: [],
        }),
        decide: async (_batch, questions) => questions.map(() => ({ kind: 'add' })),
      };
      const kept = await figures(everything);
      expect(kept.junk / kept.records).toBeGreaterThan(0.5);
      expect(kept.corrected).toBe(0);
    }, 120_000);
  },
);
