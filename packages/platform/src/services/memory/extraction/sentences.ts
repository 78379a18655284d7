const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
/** A record's most; text that long without an end of a sentence is cut between words. */
const MAX_SENTENCE = 16_000;
/** What ends with a dot and goes on: titles, and what stands before a name or a number. */
const TITLE =
  /(?:^|[\s(])(?:dr|mr|mrs|ms|mx|prof|st|rev|hon|gen|col|capt|lt|sgt|fr|sr|mt|ft|no|nos|vol|fig|vs|approx|e\.g|i\.e|cf)\.$/i;
/** Initials, and a number alone. A sentence does not end after these. */
const INITIALS = /(?:^|[\s(])(?:\p{Lu}\.)*\p{Lu}\.$|^\d{1,3}\.$/u;
/** What may end a sentence, too: it goes on where a small letter or a number follows. */
const SHORTENED =
  /(?:^|[\s(])(?:a\.m|p\.m|etc|inc|ltd|co|corp|jr|ave|rd|blvd|dept|est|tel|ext|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)\.$/iu;
const BULLET = /^\s*[-*•‣]\s+/;
const NUMBERED = /^\s*(\d{1,3})[.)]\s+(?=\S)/;

/**
 * The sentences of a text, whole: each on one line, without the mark of a list's item. Lines count as sentences of their own. No name, number or
 * word is left out.
 */
export function sentencesOf(text: string): string[] {
  const lines = text.split(/\n+/);
  return lines
    .map((line, index) => withoutMark(line, lines[index - 1], lines[index + 1]))
    .flatMap((line) => joined([...segmenter.segment(line)].map(({ segment }) => segment)))
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .flatMap(cut)
    .filter((sentence) => sentence !== '');
}

/** A number in front is a list's only where the line before or after is numbered in turn: "5. May" begins with a date. */
function withoutMark(line: string, before: string | undefined, after: string | undefined): string {
  const number = numberOf(line);
  if (number === undefined) return line.replace(BULLET, '');
  const listed = numberOf(before) === number - 1 || numberOf(after) === number + 1;
  return listed ? line.replace(NUMBERED, '') : line;
}

function numberOf(line: string | undefined): number | undefined {
  const number = NUMBERED.exec(line ?? '')?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Segments that an abbreviation has parted, together again. */
function joined(segments: readonly string[]): string[] {
  const sentences: string[] = [];
  for (const segment of segments) {
    const last = sentences.at(-1)?.trimEnd();
    const goesOn =
      last !== undefined &&
      (TITLE.test(last) || INITIALS.test(last) || (SHORTENED.test(last) && /^\s*[\p{Ll}\d]/u.test(segment)));
    if (goesOn) sentences[sentences.length - 1] += segment;
    else sentences.push(segment);
  }
  return sentences;
}

function cut(sentence: string): string[] {
  const pieces: string[] = [];
  let rest = sentence;
  while (rest.length > MAX_SENTENCE) {
    const space = rest.lastIndexOf(' ', MAX_SENTENCE);
    const end = space > 0 ? space : MAX_SENTENCE - (/[\uD800-\uDBFF]/.test(rest[MAX_SENTENCE - 1] ?? '') ? 1 : 0);
    pieces.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...pieces, rest];
}

const STOP = new Set(
  (
    'a an and are as at be been but by did do does for from had has have he her him his i in is it its me my of on or our she so that the ' +
    "their them then there they this to was we were what when where which who will with would you your am not no just very really i'm i've " +
    "i'd i'll we're we've we'll it's now"
  ).split(' '),
);

/** Words that carry meaning, in lower case without their plainest endings. Numbers count as words, whole. */
export function contentWords(text: string): string[] {
  return (text.toLowerCase().match(/\d+(?:[.,:]\d+)*|[\p{L}\p{N}]+(?:['’]\p{L}+)?/gu) ?? [])
    .map((word) => word.replace('’', "'"))
    .filter((word) => (word.length > 1 || /\d/.test(word)) && !STOP.has(word))
    .map((word) => (word.length > 4 && !/\d/.test(word) ? word.replace(/(?:'s|ies|ing|ed|es|s|y)$/, '') : word));
}

/** The common part of two sets of words, from 0 to 1. */
export function overlapOf(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const common = [...one].filter((word) => other.has(word)).length;
  return one.size + other.size === 0 ? 0 : (2 * common) / (one.size + other.size);
}
