import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KEPT_LOG_BYTES, LogArchive, type LogArchiveLimits } from './log-archive.ts';

const silent = pino({ level: 'silent' });
const arn = (name: string): string => `arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/${name}`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agentplatform-logs-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const open = (limits?: LogArchiveLimits): LogArchive => new LogArchive(join(directory, 'logs'), silent, limits);
const keep = (archive: LogArchive, name: string, sandboxId: string, at: number): Promise<void> =>
  archive.keep({ sandboxId, resourceArn: arn(name), sessionId: `session-of-${sandboxId}` }, at, [
    { line: `hello from ${sandboxId}`, at: 1_700_000_000_000 },
    { line: 'bye' },
  ]);
const ids = async (archive: LogArchive, name: string): Promise<string[]> =>
  (await archive.of(arn(name))).map((log) => log.sandboxId);

describe('the logs of ended sessions', () => {
  it('gives back those of one resource, oldest first, also to the next life of the server', async () => {
    const archive = open();
    await keep(archive, 'a', 's2', 20);
    await keep(archive, 'a', 's1', 10);
    await keep(archive, 'b', 's3', 15);
    expect(await open().of(arn('a'))).toEqual([
      {
        sessionId: 'session-of-s1',
        sandboxId: 's1',
        lines: [{ line: 'hello from s1', at: 1_700_000_000_000 }, { line: 'bye' }],
      },
      {
        sessionId: 'session-of-s2',
        sandboxId: 's2',
        lines: [{ line: 'hello from s2', at: 1_700_000_000_000 }, { line: 'bye' }],
      },
    ]);
    expect(await ids(archive, 'b')).toEqual(['s3']);
    expect(await ids(archive, 'nobody')).toEqual([]);
  });

  it('opens no file of another resource to answer', async () => {
    const archive = open();
    await keep(archive, 'a', 's1', 10);
    await keep(archive, 'b', 's2', 20);
    const [own, other] = (await readdir(join(directory, 'logs'))).sort();
    // Whose a log is stands in its name alone: an answer that read contents would find two of `a` now, or none of `b`.
    await writeFile(join(directory, 'logs', other ?? ''), await readFile(join(directory, 'logs', own ?? '')));
    expect(await ids(archive, 'a')).toEqual(['s1']);
    expect(await ids(archive, 'b')).toEqual(['s1']);
  });

  it('reads those that were kept before lines had times', async () => {
    const archive = open();
    await keep(archive, 'a', 's1', 10);
    const [name = ''] = await readdir(join(directory, 'logs'));
    const entry = { resourceArn: arn('a'), sessionId: 'of-old', sandboxId: 's1', text: 'one\ntwo\n' };
    await writeFile(join(directory, 'logs', name), JSON.stringify(entry));
    const lines = [{ line: 'one' }, { line: 'two' }];
    expect(await archive.of(arn('a'))).toEqual([{ sessionId: 'of-old', sandboxId: 's1', lines }]);
  });

  it('keeps no more of short lines than of long ones', async () => {
    const archive = open();
    const printed = Array.from({ length: 60_000 }, (_, index) => ({ line: 'x', at: 1_700_000_000_000 + 1000 * index }));
    await archive.keep({ sandboxId: 's1', resourceArn: arn('a'), sessionId: 's' }, 10, printed);
    const [name = ''] = await readdir(join(directory, 'logs'));
    expect((await stat(join(directory, 'logs', name))).size).toBeLessThan(KEPT_LOG_BYTES + 1000);
    const [kept] = await archive.of(arn('a'));
    expect(kept?.lines.at(-1)).toEqual(printed.at(-1));
    expect(kept?.lines.length).toBeGreaterThan(3000);
  });

  it('passes over a log whose writing a crash cut short', async () => {
    const archive = open();
    await keep(archive, 'a', 's1', 10);
    await keep(archive, 'a', 's2', 20);
    const [first] = (await readdir(join(directory, 'logs'))).sort();
    await writeFile(join(directory, 'logs', first ?? ''), '{"resourceArn":"ar');
    expect(await ids(archive, 'a')).toEqual(['s2']);
  });

  it('keeps so many of one resource and so many in all, and drops the oldest', async () => {
    const archive = open({ inAll: 5, ofOne: 3 });
    await keep(archive, 'b', 'b1', 1);
    await keep(archive, 'b', 'b2', 2);
    for (const at of [10, 11, 12, 13]) await keep(archive, 'a', `a${at}`, at);
    // A busy resource pushes out its own, not its neighbour's.
    expect(await ids(archive, 'a')).toEqual(['a11', 'a12', 'a13']);
    expect(await ids(archive, 'b')).toEqual(['b1', 'b2']);
    await keep(archive, 'c', 'c1', 20);
    expect(await ids(archive, 'b')).toEqual(['b2']);
  });

  it('forgets what ended before a moment, so many at most', async () => {
    const archive = open();
    for (const at of [10, 20, 30]) await keep(archive, 'a', `s${at}`, at);
    expect(await archive.forget(30, 1)).toBe(1);
    expect(await ids(archive, 'a')).toEqual(['s20', 's30']);
    expect(await archive.forget(30, 10)).toBe(1);
    expect(await archive.forget(30, 10)).toBe(0);
    expect(await ids(archive, 'a')).toEqual(['s30']);
  });
});
