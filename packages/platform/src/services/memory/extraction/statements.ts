import { contentWords } from './sentences.ts';

/** Words before a statement that say nothing: they are looked past, and left out where they name nobody. */
const OPENING =
  /^(?:(?:hi|hello|hey|yes|yeah|yep|no|nope|ok|okay|thanks|thank you|sure|great|well|oh|ah|so|and|but|also|actually|correction|honestly|good news|by the way|remember|note|please (?:remember|note)|keep in mind)\b(?: that)?[,:;!.…–-]*\s+)+/i;
const COURTESY = /^(?:(?:hi|hello|hey|thanks|thank you|ok|okay|sure|yes|yeah|great|well|oh|ah)[,!.…]+\s+)+(?=\S)/i;
/** A task, not a statement. */
const REQUEST =
  /^(?:please\b|(?:can|could|would|will) (?:you|we|i)\b|let(?:'s| me| us)\b|(?:give|show|tell|find|make|write|explain|suggest|recommend|book|send|list|check|quiz|summari[sz]e|translate|help|look|set|add|remove|change|draft|compare|describe|create|remind|play|open|close|search|calculate|convert|shorten|rewrite|fix|try|say|read|buy|order|put|take|do|don't|start|stop|go|wait|thank|never mind)\b)/i;
/** What is asked for from now on. */
const STANDING =
  /\b(?:from now on|in (?:the )?future)\b|^(?:please )?(?:always|never(?! mind))\b|^(?:please )?(?:keep|make|write|give)(?: me)? (?:your|all|the) (?:answers?|replies|responses|texts?|messages)\b|^(?:please )?(?:call|address) me\b/i;
const ADVERBS =
  '(?:(?: (?:also|really|just|still|now|only|already|usually|always|often|currently|recently|actually|definitely|probably|honestly|kind of)))*';
/** What the speaker does in this conversation, not in his life. */
const CHAT = new RegExp(
  `\\b(?:I|we)${ADVERBS} (?:think|guess|hope|see|understand|know|need|want|wonder|mean|agree|appreciate|forgot|suppose|believe|bet|wish|get|got|found|tried|try|should|could|might|may|must|would|'d|can(?:'t| ?not)? (?:find|see|get|open|do|help|tell|say)|didn't|did not|don't (?:know|understand|get|see|think|mind|need|want|care)|do not (?:know|understand|think|want)|have (?:to|no|a question|an idea|a problem|an issue|an error)|had (?:to|no)|was (?:wondering|thinking|hoping)|am (?:looking|trying|wondering|thinking|seeing|getting|not sure|sure|sorry|back|done|ready|stuck|lost|confused|curious|afraid|glad|happy|(?:so |very |a bit |too )?tired)|(?:love|like) (?:it|that|this|the idea)|look forward)\\b`,
  'i',
);
const LATER = /\b(?:I|we)(?:'ll| will| am going to|'re going to| are going to)\b/i;
const SPEAKER = /\b(?:I|we|my|our|mine|ours)\b/i;
/** A name or a number, not at the beginning. */
const ENTITY = /(?<=\S )\p{Lu}[\p{L}\p{N}]+|\d/u;
const DATED =
  /\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\p{Ll}*\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b/iu;
const NOBODY = /^(?:it|that|this|there|these|those|what|which|he|she|they|his|her|their|its)\b/i;
const PRONOUN = /^(he|she|they|it|his|her|their|its)\b/i;
const VERB =
  /\b(?:is|are|was|were|isn't|aren't|wasn't|has|have|had|hasn't|does|doesn't|can|can't|cannot|will|won't|must|put|gave|goes|went|meets?|runs?)\b|^\S+(?: \S+){0,3}? \p{Ll}+(?:s|ed)\b/iu;
const MIN_WORDS = 3;
const PREFERENCE =
  /\b(?:I|we)(?:'d| would| do| really| also| just| absolutely| usually| always| still| generally| mostly)* (?:like|love|prefer|enjoy|hate|dislike|adore|favou?r|want|avoid|can't stand|cannot stand|don't (?:like|eat|drink|want|use)|do not (?:like|eat|drink|want|use)|never|rather|am allergic)\b|\bI'm (?:allergic|vegan|vegetarian|a fan|into|not a fan)\b|\bI am (?:allergic|vegan|vegetarian|a fan|into|not a fan)\b|\bmy (?:favou?rite|preferred|preference)\b|\b(?:please|always|never) (?:call|address|reply|answer|write|use|send)\b/i;

/** The sentence without a greeting or a word of thanks in front that names nobody. */
export function withoutCourtesy(sentence: string): string {
  return sentence.replace(COURTESY, '');
}

/** Names in a sentence: words with a capital that do not begin it. */
export function namesIn(sentence: string): string[] {
  return sentence.match(/(?<=\p{L},? )\p{Lu}[\p{L}\p{N}]+/gu) ?? [];
}

/** Whether a sentence states something of the speaker, or of what he names or has named (`names`); not what he asks, answers or thinks in passing. */
export function isFact(sentence: string, names: ReadonlySet<string> = new Set()): boolean {
  const body = bodyOf(sentence);
  if (isNoStatement(body)) return STANDING.test(body) && !sentence.endsWith('?');
  if (STANDING.test(body)) return true;
  if (NOBODY.test(body)) return false;
  return SPEAKER.test(body) || ((ENTITY.test(body) || names.has(firstWordOf(body))) && VERB.test(body));
}

export function isPreference(sentence: string): boolean {
  return !sentence.endsWith('?') && (PREFERENCE.test(sentence) || STANDING.test(bodyOf(sentence)));
}

/** Whether a sentence goes on about what the one before was about, and states something of it. */
export function continues(sentence: string): boolean {
  const body = bodyOf(sentence);
  return (
    PRONOUN.test(body) &&
    !isNoStatement(body) &&
    ENTITY.test(body) &&
    !/^it (?:says|is|was|'s|works|looks|sounds)\b/i.test(body)
  );
}

/** Greetings, thanks, questions and requests: nothing that a summary needs. */
export function isSmallTalk(sentence: string): boolean {
  const body = bodyOf(sentence);
  return sentence.endsWith('?') || REQUEST.test(body) || contentWords(body).length < 2;
}

function firstWordOf(body: string): string {
  return /^\p{L}[\p{L}\p{N}]*/u.exec(body)?.[0] ?? '';
}

function bodyOf(sentence: string): string {
  return sentence
    .replaceAll('’', "'")
    .replace(OPENING, '')
    .replace(/\b(I|we)'(m|re|ve)\b/gi, expanded);
}

function expanded(_whole: string, subject: string, ending: string): string {
  return `${subject} ${{ m: 'am', re: 'are', ve: 'have' }[ending.toLowerCase()] ?? ''}`;
}

function isNoStatement(body: string): boolean {
  if (body.endsWith('?') || REQUEST.test(body) || body.split(' ').length < MIN_WORDS) return true;
  if (contentWords(body).length === 0) return true;
  return CHAT.test(body) || (LATER.test(body) && !DATED.test(body));
}

const MALE = /\b(?:husband|father|dad|son|brother|grandfather|grandpa|uncle|nephew|boyfriend|mr)\b/i;
const FEMALE = /\b(?:wife|mother|mum|mom|daughter|sister|grandmother|grandma|aunt|niece|girlfriend|mrs|ms)\b/i;
const SUBJECT =
  /^((?:(?:my|our|the)\s+)?(?:dr\. |mr\. |mrs\. |prof\. )?[\p{L}\p{N}'’-]+(?:\s+[\p{L}\p{N}'’-]+){0,3}?)\s+(?:is|are|was|were|has|have|had|can|will|turns|goes|lives|works|plays|runs|\p{Ll}+(?:s|ed))\b(.*)$/iu;
const PARTS_OF_DATES =
  /\b(?:January|February|March|April|May|June|July|August|September|October|November|December|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b/g;

/** What the sentence is about, in its own words; undefined where another reading is possible. */
export function subjectOf(sentence: string): string | undefined {
  const [, subject, rest = ''] = SUBJECT.exec(withoutCourtesy(sentence).replace(OPENING, '')) ?? [];
  if (subject === undefined || /^(?:i|we|you|this|that|there|it|he|she|they)\b/i.test(subject)) return undefined;
  return /\s\p{Lu}\p{Ll}+/u.test(rest.replace(PARTS_OF_DATES, '')) ? undefined : subject;
}

/** The sentence with what its pronoun stands for behind it: "She [My daughter Lea] plays the cello." Undefined when they do not agree. */
export function withSubject(sentence: string, subject: string): string | undefined {
  const opening = OPENING.exec(sentence)?.[0] ?? '';
  const body = sentence.slice(opening.length);
  const pronoun = PRONOUN.exec(body)?.[0] ?? '';
  if (pronoun === '') return undefined;
  if (/^(?:he|his)$/i.test(pronoun) && FEMALE.test(subject)) return undefined;
  if (/^(?:she|her)$/i.test(pronoun) && MALE.test(subject)) return undefined;
  return `${opening}${pronoun} [${subject}]${body.slice(pronoun.length)}`;
}
