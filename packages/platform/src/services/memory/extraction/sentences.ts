const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
const MAX_SENTENCE = 600;

/** The sentences of a text, each on one line; a list's items and lines count as sentences of their own. */
export function sentencesOf(text: string): string[] {
  return text
    .split(/\n+/)
    .flatMap((line) => [...segmenter.segment(line)].map(({ segment }) => segment.replace(/\s+/g, ' ').trim()))
    .map((sentence) => sentence.replace(/^[-*•\d.)\s]+(?=\p{L})/u, ''))
    .filter((sentence) => sentence !== '' && sentence.length <= MAX_SENTENCE);
}

const STOP = new Set(
  (
    'a an and are as at be been but by did do does for from had has have he her him his i in is it its me my of on or our she so that the ' +
    'their them then there they this to was we were what when where which who will with would you your am not no just very really'
  ).split(' '),
);

/** Words that carry meaning, in lower case without their plainest endings. */
export function contentWords(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+(?:'\p{L}+)?/gu) ?? [])
    .filter((word) => word.length > 1 && !STOP.has(word))
    .map((word) => (word.length > 4 ? word.replace(/(?:ies|ing|ed|es|s)$/, '') : word));
}

/** How much two texts share: the common part of their words, from 0 to 1. */
export function wordOverlap(a: string, b: string): number {
  const one = new Set(contentWords(a));
  const other = new Set(contentWords(b));
  const common = [...one].filter((word) => other.has(word)).length;
  return one.size + other.size === 0 ? 0 : (2 * common) / (one.size + other.size);
}
