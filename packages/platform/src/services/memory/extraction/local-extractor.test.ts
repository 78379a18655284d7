import { describe, expect, it } from 'vitest';
import { isFact, isPreference, localExtractor } from './local-extractor.ts';

const signal = new AbortController().signal;
const batch = { kind: 'semantic', messages: [] } as never;
const one = (text: string, day: number) => ({ content: text, at: new Date(day * 86_400_000), eventIds: ['1#a'] });

describe('the local extractor', () => {
  it.each([
    ['I work at Initech as an engineer.', true, false],
    ['My favourite colour is green.', true, true],
    ["I don't eat meat at all", true, true],
    ['We always prefer trains over planes.', true, true],
    ['The server in Oslo failed', true, false],
    ['Hello there my friend', false, false],
    ['What is my balance?', false, false],
    ['Can you book a table for me', false, false],
    ['thanks a lot', false, false],
    ['it is what it is', false, false],
  ])('%s: fact %s, preference %s', (sentence, fact, preference) => {
    expect([isFact(sentence), isPreference(sentence)]).toEqual([fact, preference]);
  });

  it.each([
    ['I like coffee.', 'I hate coffee.', 'supersede'],
    ['I work at Initech.', 'I work at Globex.', 'supersede'],
    ['My favourite colour is green.', 'My favorite colour is blue.', 'supersede'],
    ['My favourite colour is green.', 'My favourite song is Yellow.', 'add'],
    ['I like coffee.', 'I like tea.', 'add'],
    ['I own a red car.', 'I own the red car.', 'nothing'],
    ['I own a red car.', 'I own a blue boat.', 'add'],
  ])('"%s" then "%s": %s', async (before, after, kind) => {
    const neighbours = [{ id: 'mem-1', content: before, at: new Date(0) }];
    const [decision] = await localExtractor.decide(batch, [{ candidate: one(after, 1), neighbours }], signal);
    expect(decision?.kind).toBe(kind);
  });

  it('does not let what was said earlier replace what was said later', async () => {
    const neighbours = [{ id: 'mem-1', content: 'I work at Globex.', at: new Date(5 * 86_400_000) }];
    const [decision] = await localExtractor.decide(
      batch,
      [{ candidate: one('I work at Initech.', 1), neighbours }],
      signal,
    );
    expect(decision).toEqual({ kind: 'nothing', known: 'mem-1' });
  });
});
