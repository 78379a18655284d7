import { expect, it } from 'vitest';
import type { Database } from '../storage/index.ts';
import { DatabaseWait } from './database-wait.ts';
import { NO_SPAN, type Span } from './span.ts';

it('notes in one part of a request how long it waited, statements at once counted once', async () => {
  let now = 1000;
  const turns: (() => void)[] = [];
  const statement = (): Promise<never[]> => new Promise((resolve) => turns.push(() => resolve([])));
  const database = { query: statement, execute: statement, exec: statement, transaction: statement };
  const wait = new DatabaseWait(() => now);
  const watched = wait.watch(database as unknown as Database);
  const parts: Record<string, unknown>[] = [];
  const span: Span = {
    ...NO_SPAN,
    traced: true,
    child: (name, kind) => {
      const part: Record<string, unknown> = { name, kind };
      parts.push(part);
      const set = (key: string, value: unknown): void => void Object.assign(part, { [key]: value });
      return { ...NO_SPAN, set, end: (at) => set('at', at) };
    },
  };
  const end = async (ms: number): Promise<void> => {
    now += ms;
    turns.shift()?.();
    await new Promise(setImmediate);
  };
  const done = wait.during(span, async () => {
    const first = watched.query('a');
    now += 5;
    await Promise.all([first, watched.execute('b')]);
    now += 500;
    await watched.transaction(async () => undefined);
    now += 7;
  });
  await end(10);
  await end(20);
  await end(5);
  await done;
  expect(parts).toEqual([
    {
      name: 'database',
      kind: 'client',
      'db.system.name': 'postgresql',
      'agentplatform.db.statements': 3,
      'agentplatform.db.wait_ms': 40,
      at: 1540,
    },
  ]);
  // Beside a request, nothing is noted; nor for one that has not asked.
  const beside = watched.query('c');
  await end(1);
  await beside;
  await wait.during(span, async () => undefined);
  expect(parts).toHaveLength(1);
});
