import { operations } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import { writes } from './writes.ts';

const TAKES_ROOM =
  'Add BatchCreate BatchPut BatchUpdate Create Ingest Process Put Reset Rotate Save Set Start Submit Synchronize Tag Update';
const TAKES_NONE = 'BatchDelete Complete Converse Delete Evaluate Get Invoke List Retrieve Search Stop Untag';

const verbOf = (name: string): string => /^(Batch)?[A-Z][a-z]+/.exec(name)?.[0] ?? name;

it('is decided for every verb of the contract that is no mere look; a new one belongs into one of the two lists', () => {
  const verbs: Record<'room' | 'none', Set<string>> = { room: new Set(), none: new Set() };
  for (const { name, readonly } of Object.values(operations)) {
    if (readonly) expect(writes(name), name).toBe(false);
    else verbs[writes(name) ? 'room' : 'none'].add(verbOf(name));
  }
  expect([...verbs.room].sort().join(' ')).toBe(TAKES_ROOM);
  expect([...verbs.none].sort().join(' ')).toBe(TAKES_NONE);
});

it.each([
  'BatchPutGatewayRateLimits',
  'SetTokenVaultCMK',
  'SubmitRegistryRecordForApproval',
  'SynchronizeGatewayTargets',
] as const)('%s takes room', (name) => {
  expect(writes(name)).toBe(true);
});
