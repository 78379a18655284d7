export const ANSWER_TASK =
  'You answer a question about earlier conversations from notes that were recalled for it. Each note has its date. Answer in as few words as are needed, with absolute dates. If the notes do not hold the answer, say that you do not know.';

export const JUDGE_TASK =
  'You judge whether a given answer to a question agrees with the right one. Other words, more detail and other formats of a date are no mistake; another fact, a missing one or "I do not know" is. Answer with the one word CORRECT or WRONG.';

export function answerPrompt(question: string, notes: readonly { text: string; at: Date | undefined }[]): string {
  const lines = notes.map(({ text, at }) => `- ${at ? `[${at.toISOString().slice(0, 10)}] ` : ''}${text}`);
  return `Notes:\n${lines.join('\n')}\nQuestion: ${question}`;
}

export function judgePrompt(question: string, right: string, given: string): string {
  return `Question: ${question}\nRight answer: ${right}\nGiven answer: ${given}`;
}
