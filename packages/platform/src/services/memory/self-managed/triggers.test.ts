import { describe, expect, it } from 'vitest';
import { idleSecondsOf, isEnough, tokensOf } from './triggers.ts';

const messages = { messageBasedTrigger: { messageCount: 3 } };
const tokens = { tokenBasedTrigger: { tokenCount: 200 } };
const time = { timeBasedTrigger: { idleSessionTimeout: 60 } };

describe('triggers', () => {
  it.each([
    [[messages], { messages: 2, tokens: 9999 }, false],
    [[messages], { messages: 3, tokens: 0 }, true],
    [[tokens], { messages: 99, tokens: 199 }, false],
    [[tokens], { messages: 1, tokens: 200 }, true],
    [[messages, tokens], { messages: 1, tokens: 200 }, true],
    [[time], { messages: 99, tokens: 9999 }, false],
    [[{ messageBasedTrigger: {} }], { messages: 5, tokens: 0 }, false],
    [[{ messageBasedTrigger: {} }], { messages: 6, tokens: 0 }, true],
    [[{ tokenBasedTrigger: {} }], { messages: 0, tokens: 1000 }, true],
    [[], { messages: 99, tokens: 9999 }, false],
  ])('%j with %j is enough: %s', (conditions, held, wanted) => {
    expect(isEnough(conditions, held)).toBe(wanted);
  });

  it('takes the shortest idle time, and none where there is no such condition', () => {
    expect(idleSecondsOf([time, { timeBasedTrigger: { idleSessionTimeout: 10 } }, messages])).toBe(10);
    expect(idleSecondsOf([{ timeBasedTrigger: {} }])).toBe(300);
    expect(idleSecondsOf([messages, tokens])).toBeUndefined();
  });

  it('counts four characters as a token', () => {
    expect([tokensOf(''), tokensOf('a'), tokensOf('abcd'), tokensOf('abcde')]).toEqual([0, 1, 1, 2]);
  });
});
