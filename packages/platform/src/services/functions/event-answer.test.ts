import { expect, it } from 'vitest';
import { answerOf } from './event-answer.ts';

const nested = (levels: number): Buffer => Buffer.from('['.repeat(levels) + ']'.repeat(levels));

it('is a failure of the function where it is nested deeper than can be written again', () => {
  expect(answerOf({ payload: nested(1_000_000), failed: false })).toMatchObject({
    ...{ outcome: 'failed', errorType: 'Runtime.InvalidResponse' },
    errorMessage: expect.stringContaining('256 levels'),
  });
  expect(answerOf({ payload: nested(200), failed: false })).toMatchObject({ outcome: 'returned' });
});
