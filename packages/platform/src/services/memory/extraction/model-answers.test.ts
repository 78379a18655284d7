import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Question } from './candidate.ts';
import type { Message } from './message.ts';
import { decisionsOf, factsOf } from './model-answers.ts';

const messages: Message[] = [1, 2].map((n) => ({
  eventId: `${n}#a`,
  index: 0,
  role: 'USER',
  text: `text ${n}`,
  at: new Date(n),
}));
const question: Question = {
  candidate: { content: 'new', at: new Date(1), eventIds: ['1#a'] },
  neighbours: [{ id: 'mem-1', content: 'old', at: new Date(0) }],
};

describe('a model’s answers', () => {
  it('become facts with the events they come from, whatever stands around the list', () => {
    const answer = 'Sure!\n```json\n[{"fact":" A ","messages":[2]},{"fact":"B"},{"fact":""},{"other":1}]\n```';
    expect(factsOf(answer, messages)).toEqual([
      { content: 'A', at: new Date(2), eventIds: ['2#a'] },
      { content: 'B', at: new Date(2), eventIds: ['1#a', '2#a'] },
    ]);
  });

  it('become decisions; what names no known record is added', () => {
    const of = (item: object) => decisionsOf(JSON.stringify([{ item: 1, known: 1, ...item }]), [question])[0];
    expect(of({ decision: 'supersede' })).toEqual({ kind: 'supersede', id: 'mem-1' });
    expect(of({ decision: 'supersede', known: 7 })).toEqual({ kind: 'add' });
    expect(of({ decision: 'update', text: 'both' })).toEqual({ kind: 'update', id: 'mem-1', content: 'both' });
    expect(of({ decision: 'update' })).toEqual({ kind: 'add' });
    expect(of({ decision: 'nothing' })).toEqual({ kind: 'nothing', known: 'mem-1' });
    expect(of({ item: 3, decision: 'nothing' })).toEqual({ kind: 'add' });
  });

  it('that are no list are an error, and nothing else is ever thrown', () => {
    expect(() => factsOf('I cannot do that.', messages)).toThrow(/asked for a JSON list/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (answer) => {
        for (const read of [() => factsOf(answer, messages), () => decisionsOf(answer, [question])]) {
          try {
            read();
          } catch (error) {
            expect(error).toMatchObject({ name: 'MalformedAnswerError' });
          }
        }
      }),
    );
  });
});
