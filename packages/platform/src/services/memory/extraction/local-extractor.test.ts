import { describe, expect, it } from 'vitest';
import type { Batch } from './candidate.ts';
import { localExtractor } from './local-extractor.ts';
import { isFact, isPreference } from './statements.ts';

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
    ['Hi, I am Anna and I live in Oslo.', true, false],
    ['Yes, I am allergic to nuts.', true, true],
    ['No, I moved to Madrid.', true, false],
    ['Thanks, my train leaves at 9:15.', true, false],
    ['Please remember that I work at night.', true, false],
    ['Please call me Al.', true, true],
    ['Please find a vet that is open on Sunday.', false, false],
    ['I think I will go for a run later.', false, false],
    ['I need a plumber, the tap is dripping.', false, false],
    ['It says connection refused.', false, false],
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
    ['I am allergic to peanuts, so none please.', 'I am not allergic to peanuts after all.', 'supersede'],
    ['I am not allergic to peanuts.', 'I am allergic to peanuts.', 'supersede'],
    ['I love espresso but I never drink coffee after 4 pm.', 'I no longer drink coffee.', 'supersede'],
    ['I no longer drink coffee.', 'I drink green tea in the morning.', 'add'],
    ["I'm vegetarian and I don't like mushrooms.", "I don't like mushrooms.", 'add'],
    ['I take 10 mg of lisinopril every morning.', 'I take 5 mg of lisinopril every morning now.', 'supersede'],
    ['I drive a 2018 Skoda Octavia.', 'I sold the Skoda Octavia.', 'supersede'],
    ['Our standup is at 9:15 in room Oak.', 'Our standup is at 10:00 in room Elm now.', 'supersede'],
    ['My daughter Lea is 7 years old.', 'My son Max is 9 years old.', 'add'],
    ['My locker 1 holds 2 pairs of boots.', 'My locker 2 holds 3 pairs of boots.', 'add'],
    ['I have an exam on 14 February.', 'I have an exam on 8 July.', 'add'],
    ['Our cluster runs Kubernetes 1.29 on Hetzner.', 'Our cluster runs Kubernetes 1.31 on Hetzner now.', 'supersede'],
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

  const stated = async (...texts: string[]): Promise<string[]> => {
    const messages = texts.map((text, index) => ({
      eventId: `${index}#a`,
      index: 0,
      role: 'USER',
      text,
      at: new Date(0),
    }));
    const { candidates } = await localExtractor.facts({ kind: 'semantic', messages } as unknown as Batch, signal);
    return candidates.map(({ content }) => content);
  };

  it('keeps every fact of a batch, and fails where there are more than it can compare', async () => {
    const fives = Array.from({ length: 50 }, (_, event) =>
      [0, 1, 2, 3, 4].map((n) => `My locker ${event * 5 + n} holds ${n} boots.`).join(' '),
    );
    expect(await stated(...fives)).toHaveLength(250);
    const many = Array.from({ length: 5_001 }, (_, n) => `My locker ${n} holds boots.`).join(' ');
    await expect(stated(many)).rejects.toThrow(/more than the 5000 things/);
  });

  it('says what a pronoun stands for, or keeps the sentence before it', async () => {
    expect(await stated('My daughter Lea plays the cello.', 'Good idea.', 'She has lessons on Monday.')).toEqual([
      'My daughter Lea plays the cello.',
      'She [My daughter Lea] has lessons on Monday.',
    ]);
    expect(await stated('My wife met Dr. Jones in Kiel. He is at ward 7.')).toEqual([
      'My wife met Dr. Jones in Kiel.',
      'My wife met Dr. Jones in Kiel. He is at ward 7.',
    ]);
    expect(await stated('It says 404.')).toEqual([]);
  });

  it('makes no reflections: no rule knows what episodes mean', async () => {
    expect(await localExtractor.reflect(batch, ['one deployment', 'another deployment'], signal)).toBeUndefined();
  });
});
