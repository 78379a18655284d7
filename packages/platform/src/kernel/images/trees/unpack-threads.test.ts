import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../testing/temp-dir.ts';
import { UnpackThreads } from './unpack-threads.ts';

const never = new AbortController().signal;
const job = (into: string) => ({ into, layers: [], spentBytes: 0, spentEntries: 0, imageBytes: 1, imageEntries: 1 });

describe('unpacking threads', () => {
  it('run as many at a time as allowed, in order, and who gives up waiting does not hold a place', async () => {
    const dir = await tempDir();
    const threads = new UnpackThreads(1);
    const ended: string[] = [];
    const run = (name: string, signal = never) =>
      threads.run(job(join(dir, name)), signal).then(() => {
        ended.push(name);
        // Those behind have not begun.
        return ['a', 'b', 'c', 'd'].filter((other) => existsSync(join(dir, other)));
      });
    const stop = new AbortController();
    const a = run('a');
    const b = run('b', stop.signal);
    const c = run('c');
    stop.abort(new Error('b left'));
    await expect(b).rejects.toThrow('b left');
    expect(await a).toEqual(['a']);
    expect(await c).toEqual(['a', 'c']);
    expect(await run('d')).toEqual(['a', 'c', 'd']);
    expect(ended).toEqual(['a', 'c', 'd']);
  });
});
