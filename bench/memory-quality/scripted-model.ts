import { ANSWER_TASK, JUDGE_TASK } from './prompts.ts';

/**
 * In the place of a model, for tests: keeps every sentence as a fact, answers with the recalled line that shares most words
 * with the question, and judges by the words of the right answer. It shows that the harness works, not how good memory is.
 */
export function scriptedModel(system: string, user: string): string {
  if (system.startsWith(ANSWER_TASK)) {
    const [memories = '', question = ''] = user.split('\nQuestion: ');
    const wanted = wordsOf(question);
    const lines = memories.split('\n').filter((line) => line.startsWith('- '));
    return lines.toSorted((a, b) => shared(wordsOf(b), wanted) - shared(wordsOf(a), wanted))[0] ?? 'I do not know.';
  }
  if (system.startsWith(JUDGE_TASK)) {
    const right = wordsOf(/^Right answer: (.*)$/m.exec(user)?.[1] ?? '');
    const given = wordsOf(/^Given answer: ([\s\S]*)$/m.exec(user)?.[1] ?? '');
    return shared(right, given) >= right.size / 2 ? 'CORRECT' : 'WRONG';
  }
  const facts = [...user.matchAll(/^(\d+)\. \[[^\]]*\] (?:USER|ASSISTANT): (.+)$/gm)];
  return JSON.stringify(facts.map(([, number, fact]) => ({ fact, messages: [Number(number)] })));
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []);
}

function shared(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  return [...one].filter((word) => other.has(word)).length;
}
