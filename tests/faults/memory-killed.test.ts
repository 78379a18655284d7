import { expect, it } from 'vitest';
import { isWhole, killWhileRemembering } from '../support/memory-kills.ts';

/** The long form is `npm run bench -- faults memory`, which kills a hundred times. */
it('a server killed while it writes and extracts has every event and record that it acknowledged, once', async () => {
  const account = await killWhileRemembering({ kills: 3, paceMs: 0 });
  expect(account.acknowledgedEvents).toBeGreaterThan(0);
  expect(isWhole(account), JSON.stringify(account, null, 2)).toBe(true);
}, 600_000);
