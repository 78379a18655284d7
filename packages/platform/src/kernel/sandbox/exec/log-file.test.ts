import { appendFile, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import type { LogLine } from '../sandbox.ts';
import { endOfLog, followLog, type LogFiles, lastLines, lastText, logFiles } from './log-file.ts';

const tailLog = async (files: LogFiles, max: number): Promise<string> => lastText(await endOfLog(files, max), max);

describe('log of a sandbox', () => {
  let dir: string;
  let files: LogFiles;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'log-file-'));
    files = logFiles(dir);
  });
  afterEach(() => rm(dir, { recursive: true }));

  it('is empty when nothing was written', async () => {
    expect(await tailLog(files, 100)).toBe('');
  });

  it('ends with the lines written last that fit, or with the end of one that is longer, across the rotation', async () => {
    const lines = fc.array(
      fc.string({ maxLength: 12, unit: 'grapheme' }).map((line) => `${line.replaceAll('\n', '')}\n`),
      { maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(lines, lines, fc.integer({ min: 1, max: 200 }), async (before, after, max) => {
        await writeFile(files.previous, before.join(''));
        await writeFile(files.current, after.join(''));
        expect(await tailLog(files, max)).toBe(linesThatFit([...before, ...after], max));
      }),
      {
        numRuns: 200,
        examples: [
          [[], ['   \n', '   \n'], 8],
          [['a\n'], ['b\n'], 2],
          [['a\n'], [], 1],
        ],
      },
    );
  });

  it('is followed through a rotation without losing or repeating a line', async () => {
    let ended = false;
    const seen: string[] = [];
    await writeFile(files.current, 'l0\n');
    const reading = (async () => {
      for await (const { line } of followLog(files, {
        follow: true,
        fromStart: true,
        clock: systemClock,
        ended: () => ended,
      }))
        seen.push(line);
    })();
    for (let index = 1; index < 30; index++) {
      if (index % 12 === 0) {
        await rename(files.current, files.previous);
        await writeFile(files.current, '');
      }
      await appendFile(files.current, `l${index}\n`);
      await sleep(20);
    }
    await appendFile(files.current, 'no newline');
    ended = true;
    await reading;
    expect(seen).toEqual([...Array.from({ length: 30 }, (_, index) => `l${index}`), 'no newline']);
  });

  describe('with the times of its writing beside it', () => {
    const inode = async (file: string): Promise<number> => (await stat(file)).ino;
    const read = async (): Promise<LogLine[]> => {
      const lines: LogLine[] = [];
      const options = { follow: false, fromStart: true, clock: systemClock, ended: () => true };
      for await (const line of followLog(files, options)) lines.push(line);
      return lines;
    };
    beforeEach(async () => {
      await writeFile(files.previous, 'one\ntwo\nthr');
      await writeFile(files.current, 'ee\nfour\nfive');
      await writeFile(`${files.previous}.times`, `${await inode(files.previous)}\n0 100\n4 103\n`);
      await writeFile(`${files.current}.times`, `${await inode(files.current)}\n0 104\n5 107\n`);
    });

    it('gives each line the time at which it began', async () => {
      const lines = [
        { line: 'one', at: 100_000 },
        { line: 'two', at: 103_000 },
        { line: 'three', at: 103_000 },
        { line: 'four', at: 104_000 },
        { line: 'five', at: 107_000 },
      ];
      expect(await read()).toEqual(lines);
      expect(lastLines(await endOfLog(files, 1000), 1000)).toEqual(lines);
      expect(lastLines(await endOfLog(files, 9), 9)).toEqual(lines.slice(3));
    });

    it('finds them behind a log that was rotated since it was opened, and takes none of another log', async () => {
      await rename(`${files.current}.times`, `${files.previous}.times`);
      expect((await read()).map(({ at }) => at)).toEqual([undefined, undefined, undefined, 104_000, 107_000]);
    });
  });

  it('can be followed from its end only', async () => {
    await writeFile(files.current, 'old\n');
    let ended = false;
    const reading = (async () => {
      const seen: string[] = [];
      for await (const { line } of followLog(files, {
        follow: true,
        fromStart: false,
        clock: systemClock,
        ended: () => ended,
      }))
        seen.push(line);
      return seen;
    })();
    await sleep(50);
    await appendFile(files.current, 'new\n');
    ended = true;
    expect(await reading).toEqual(['new']);
  });

  it('cuts a line that never ends', async () => {
    await writeFile(files.current, 'x'.repeat(200_000));
    const seen: number[] = [];
    for await (const { line } of followLog(files, {
      follow: false,
      fromStart: true,
      clock: systemClock,
      ended: () => true,
    }))
      seen.push(line.length);
    expect(Math.max(...seen)).toBeLessThanOrEqual(65_536);
    expect(seen.reduce((sum, length) => sum + length, 0)).toBe(200_000);
  });
});

/** What `tailLog` promises, said the long way round. */
function linesThatFit(lines: string[], max: number): string {
  let tail = '';
  for (const line of lines.toReversed()) {
    if (Buffer.byteLength(line + tail) > max) break;
    tail = line + tail;
  }
  return tail || Buffer.from(lines.join('')).subarray(-max).toString('utf8');
}
