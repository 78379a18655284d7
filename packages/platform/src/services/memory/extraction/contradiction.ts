import { contentWords, overlapOf } from './sentences.ts';

/** Share of words from which two statements say the same, when numbers and "not" agree. */
const SAME = 0.9;
/** Share of words from which they speak of the same thing with another number, where the newer says itself that something has changed. */
const CHANGED = 0.45;
const LEAST_SHARED = 2;

const NEGATION = /\b(?:not|no longer|never|cannot|don't|doesn't|didn't|isn't|aren't|wasn't|won't|can't|any ?more)\b/i;
const NEGATIONS = new RegExp(`${NEGATION.source}|\\b(?:after all|no|longer|do|does|even)\\b`, 'gi');
const CHANGE =
  /\b(?:now|no longer|any ?more|from now on|instead|actually|correction|changed|moved|rescheduled|postponed|raised|lowered|upgraded|switched|promoted|has been|have been|used to)\b/i;
/** Phrases that end an earlier fact. The words after the phrase name the fact. */
const ENDED =
  /\b(?:I|we)(?:'ve|'m|'re| have| am| are)? (?:no longer|not|don't|do not|never|stopped|quit|left|gave up|sold|cancelled|canceled|finished|got rid of) (?:(?:my|our|the|a|an|working (?:at|for)) )?([^,.;]+)/i;
const OWN = /\b(?:I|we)\b/i;
const NUMBER =
  /\d+(?:[.,:]\d+)*|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|first|second|third|last)\b/gi;

/** What a newer statement does to an older one. */
export type Relation = 'same' | 'replaces' | 'none';

/** By rules, of two statements of one person: where a rule cannot know, both stand. */
export function relationOf(newer: string, older: string): Relation {
  const [one, other] = [statementOf(newer), statementOf(older)];
  const overlap = overlapOf(one.words, other.words);
  const sameNumbers = one.numbers === other.numbers;
  if (one.negated === other.negated && sameNumbers && overlap >= SAME) return 'same';
  if (one.slot !== undefined && one.slot === other.slot) return one.value === other.value ? 'same' : 'replaces';
  if (one.negated !== other.negated && contains(one, other) && sameSubject(newer, older)) return 'replaces';
  if (ends(newer, older)) return 'replaces';
  if (sameNumbers || one.numbers === '' || other.numbers === '' || one.negated !== other.negated) return 'none';
  const shared = [...one.words].filter((word) => other.words.has(word)).length;
  return CHANGE.test(newer) && overlap >= CHANGED && shared >= LEAST_SHARED ? 'replaces' : 'none';
}

interface Statement {
  /** Without numbers and negations. */
  words: ReadonlySet<string>;
  numbers: string;
  negated: boolean;
  slot: string | undefined;
  value: string;
}

function statementOf(text: string): Statement {
  // What resolved a time or a pronoun was not said.
  const said = text.replaceAll('’', "'").replace(/ \[[^\]]*\]/g, '');
  const numbers = (said.match(NUMBER) ?? []).map((number) => number.toLowerCase()).join(' ');
  const bare = said.replace(NUMBER, ' ').replace(NEGATIONS, ' ');
  return { words: new Set(contentWords(bare)), numbers, negated: NEGATION.test(said), ...slotOf(said) };
}

/** Whether the statement without "not" has the words of the other, all but one where there are many. */
function contains(one: Statement, other: Statement): boolean {
  const [positive, negative] = one.negated ? [other, one] : [one, other];
  const shared = [...positive.words].filter((word) => negative.words.has(word)).length;
  const fewer = Math.min(positive.words.size, negative.words.size);
  return shared > 0 && shared >= fewer - (fewer > 3 ? 1 : 0);
}

function sameSubject(newer: string, older: string): boolean {
  return OWN.test(newer) === OWN.test(older);
}

/** Whether the newer one ends what the older one says that the speaker does, has or is. */
function ends(newer: string, older: string): boolean {
  const of = endedIn(newer);
  // Who said so before has nothing to take back.
  if (of.length === 0 || !OWN.test(older) || endedIn(older).join() === of.join()) return false;
  const words = new Set(contentWords(older));
  return of.every((word) => words.has(word));
}

function endedIn(text: string): string[] {
  return contentWords(ENDED.exec(text.replaceAll('’', "'"))?.[1]?.replace(NEGATIONS, ' ') ?? '');
}

/** What a statement says of one thing that can have one value at a time. */
const SLOTS: [RegExp, (match: RegExpExecArray) => string][] = [
  [
    /\b(?:I|we)(?:'ve)? (?:now |currently |just |still |recently |have )*(?:live|lives|moved|relocated|am living|are living|rent (?:an? )?\p{L}+) (?:in|to|at|on) (.+)/iu,
    () => 'lives in',
  ],
  [
    /\b(?:I|we) (?:now |currently |just |still |recently )*(?:work|am working|started working|started) (?:at|for) (.+)/i,
    () => 'works at',
  ],
  [/\bI(?:'m| am) (?:now |currently )?(?:an? |the )?[\p{Ll} ]+ (?:at|for) (?:the )?\p{Lu}.+/u, () => 'works at'],
  [/\bI(?:'m| am) (?:now |currently )?(\d{1,3}) years old/i, () => 'age'],
  [/\bI(?:'m| am) (?:now |currently |a |an )*(vegan|vegetarian|pescatarian|omnivore)\b/i, () => 'diet'],
  [/\bI (?:now |currently )*(drive|ride|weigh|earn)\b (.+)/i, (m) => `I ${m[1]?.toLowerCase()}`],
  [
    /\b(?:my|our) (?:new )?((?:[\p{L}-]+ ){0,2}?(?:favou?rite [\p{L} ]{1,60}?|name|email|e-mail|phone(?: number)?|number|address|job|age|birthday|wife|husband|partner|boss|manager|landlord|budget|weight|height|salary|[\p{L}]+'s name)) (?:is|are)(?: now)? (.+)/iu,
    (m) => `my ${m[1]?.toLowerCase().replace('favour', 'favor')}`,
  ],
  [
    /\b(?:my|our|the) ((?:[\p{L}-]+ ){1,3}?)(is|are|meets|starts|begins|ends|takes place|weighs|costs)(?: now)? (at|on|in|every|from|\d[\d.,]* ?\p{L}*|with)\b(.+)/iu,
    (m) => `the ${m[1]?.toLowerCase().trim()} ${m[2]?.toLowerCase()} ${kindOf(m[3])}`,
  ],
  [
    /^(\p{Lu}\p{L}+) (is|weighs|costs)(?: now)? (\d[\d.,]* ?\p{L}+)(|\P{L}.*)$/u,
    (m) => `${m[1]} ${m[2]} ${kindOf(m[3])}`,
  ],
  [
    /\bI(?: now| also| really)? (?:like|love|prefer|enjoy|hate|dislike|can't stand|don't like|do not like|no longer like) (.+)/i,
    (m) => `liking ${contentWords(m[1] ?? '').join(' ')}`,
  ],
];

/** The word, or the unit of a number. */
function kindOf(word = ''): string {
  return word.replace(/^\d[\d.,]* ?/, '#').toLowerCase();
}

function slotOf(said: string): { slot: string | undefined; value: string } {
  for (const [pattern, name] of SLOTS) {
    const match = pattern.exec(said.replace(/^(?:yes|no|actually|correction|hi|hello)[,:!] /i, ''));
    if (match) return { slot: name(match), value: contentWords(said).join(' ') };
  }
  return { slot: undefined, value: '' };
}
