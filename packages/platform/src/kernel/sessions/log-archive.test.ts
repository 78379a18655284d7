import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogArchive, type LogArchiveLimits } from './log-archive.ts';

const silent = pino({ level: 'silent' });
const arn = (name: string): string => `arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/${name}`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agentplatform-logs-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const open = (limits?: LogArchiveLimits): LogArchive => new LogArchive(join(directory, 'logs'), silent, limits);
const keep = (archive: LogArchive, name: string, sandboxId: string, at: number): Promise<void> =>
  archive.keep(
    { sandboxId, resourceArn: arn(name), sessionId: `session-of-${sandboxId}` },
    at,
    `hello from ${sandboxId}\nbye\n`,
  );
const ids = async (archive: LogArchive, name: string): Promise<string[]> =>
  (await archive.of(arn(name))).map((log) => log.sandboxId);

describe('the logs of ended sessions', () => {
  it('gives back those of one resource, oldest first, also to the next life of the server', async () => {
    const archive = open();
    await keep(archive, 'a', 's2', 20);
    await keep(archive, 'a', 's1', 10);
    await keep(archive, 'b', 's3', 15);
    expect(await open().of(arn('a'))).toEqual([
      { sessionId: 'session-of-s1', sandboxId: 's1', lines: ['hello from s1', 'bye'] },
      { sessionId: 'session-of-s2', sandboxId: 's2', lines: ['hello from s2', 'bye'] },
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
