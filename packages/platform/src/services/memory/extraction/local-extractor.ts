import { setImmediate as turn } from 'node:timers/promises';
import type { Candidate, Decision, Extractor, Question } from './candidate.ts';
import type { Message } from './message.ts';
import { resolveTimes } from './resolve-times.ts';
import { contentWords, sentencesOf, wordOverlap } from './sentences.ts';

const FIRST_PERSON = /\b(?:I|I'm|I've|I'd|I'll|my|mine|we|we're|we've|our|me)\b/i;
const ENTITY = /(?<=\S )\p{Lu}[\p{L}\p{N}]+|\d/u;
const PREFERENCE =
  /\b(?:I|we)(?:'d| would| do| really| also| just| absolutely| usually| always| still| generally| mostly)* (?:like|love|prefer|enjoy|hate|dislike|adore|favou?r|want|avoid|can't stand|cannot stand|don't (?:like|eat|drink|want|use)|do not (?:like|eat|drink|want|use)|never|rather|am allergic)\b|\bI'm (?:allergic|vegan|vegetarian|a fan|into|not a fan)\b|\bI am (?:allergic|vegan|vegetarian|a fan|into|not a fan)\b|\bmy (?:favou?rite|preferred|preference)\b|\b(?:please|always|never) (?:call|address|reply|answer|write|use|send)\b/i;
/** Talk that says nothing to keep: greetings, thanks, requests and questions. */
const SMALL_TALK =
  /^(?:hi|hello|hey|thanks|thank you|ok|okay|sure|yes|no|great|good (?:morning|afternoon|evening|night)|bye|please|can you|could you|would you|will you|let me know|tell me|show me|what|how|why|when|where|who|which|is it|are you|do you)\b/i;
const MIN_WORDS = 3;
const MAX_DIGEST_SENTENCES = 12;
const SAME = 0.9;
const MAX_FACTS = 100;
/** Lines that a digest is chosen from at most; of more, the newest count. */
const MAX_LINES = 20_000;

/**
 * Extraction by rules, without any model and without a network: sentences in which the user speaks of himself, of named
 * things or of numbers become facts; sentences that state a liking become preferences; a summary is the most telling
 * sentences in their order. It knows English only, keeps the user's own words and does not infer.
 */
export const localExtractor: Extractor = {
  async facts({ messages, kind }, signal) {
    const wanted = kind === 'userPreference' ? isPreference : isFact;
    const found: Candidate[] = [];
    for await (const { sentence, message } of sentencesIn(messages, signal)) {
      if (message.role !== 'USER' || !wanted(sentence)) continue;
      found.push({ content: resolveTimes(sentence, message.at), at: message.at, eventIds: [message.eventId] });
      if (found.length === MAX_FACTS) break;
    }
    return found;
  },

  async digest({ messages, kind }, previous, signal) {
    const said: string[] = [];
    for await (const { sentence, message } of sentencesIn(messages, signal))
      if (!isSmallTalk(sentence)) said.push(`${speaker(message)}: ${resolveTimes(sentence, message.at)}`);
    const before = previous === undefined ? [] : previous.split('\n');
    const lines = [...new Set([...before, ...said.slice(-MAX_LINES)])];
    if (lines.length === before.length) return previous;
    return kind === 'episodic' ? episode(lines) : mostTelling(lines, MAX_DIGEST_SENTENCES).join('\n');
  },

  async reflect(_batch, episodes) {
    const counts = new Map<string, number>();
    for (const text of episodes)
      for (const word of new Set(contentWords(text))) counts.set(word, (counts.get(word) ?? 0) + 1);
    const shared = [...counts]
      .filter(([word, count]) => count >= 2 && count * 2 >= episodes.length && word.length > 3)
      .sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
      .slice(0, 8);
    if (episodes.length < 2 || shared.length === 0) return undefined;
    return `Across ${episodes.length} episodes, these come up again: ${shared.map(([word, count]) => `${word} (${count})`).join(', ')}.`;
  },

  async decide(_batch, questions) {
    return questions.map(decideOne);
  },
};

interface Said {
  sentence: string;
  message: Message;
}

/** Message by message, and requests have their turn between them: a batch may be megabytes. */
async function* sentencesIn(messages: readonly Message[], signal: AbortSignal): AsyncGenerator<Said> {
  for (const message of messages) {
    await turn(undefined, { signal });
    for (const sentence of sentencesOf(message.text)) yield { sentence, message };
  }
}

function speaker({ role }: Message): string {
  return role === 'USER' ? 'User' : 'Assistant';
}

function isSmallTalk(sentence: string): boolean {
  return sentence.endsWith('?') || SMALL_TALK.test(sentence) || contentWords(sentence).length < MIN_WORDS - 1;
}

export function isPreference(sentence: string): boolean {
  return !sentence.endsWith('?') && PREFERENCE.test(sentence);
}

export function isFact(sentence: string): boolean {
  if (isSmallTalk(sentence) || sentence.split(' ').length < MIN_WORDS) return false;
  return FIRST_PERSON.test(sentence) || ENTITY.test(sentence);
}

/** An episode: what was wanted first, what was done, how it ended. */
function episode(lines: readonly string[]): string {
  const inner = lines.filter((line) => !/^(?:Intent|Steps|Outcome): /.test(line));
  const intent = lines.find((line) => line.startsWith('Intent: ')) ?? `Intent: ${inner[0] ?? ''}`;
  const outcome = inner.at(-1);
  const steps = mostTelling(inner, 6);
  return [
    intent,
    ...steps.filter((line) => line !== outcome && `Intent: ${line}` !== intent),
    `Outcome: ${outcome}`,
  ].join('\n');
}

/** The lines whose words come up most, in their order. */
function mostTelling(lines: readonly string[], limit: number): string[] {
  if (lines.length <= limit) return [...lines];
  const counts = new Map<string, number>();
  const words = lines.map((line) => [...new Set(contentWords(line))]);
  for (const line of words) for (const word of line) counts.set(word, (counts.get(word) ?? 0) + 1);
  const weights = words.map(
    (line) => line.reduce((sum, word) => sum + (counts.get(word) ?? 0), 0) / Math.sqrt(line.length + 1),
  );
  const kept = new Set(
    weights
      .map((weight, index) => ({ weight, index }))
      .sort((a, b) => b.weight - a.weight)
      .slice(0, limit)
      .map(({ index }) => index),
  );
  return lines.filter((_line, index) => kept.has(index));
}

/** What a sentence states about one thing that can have one value at a time: the thing, and the value. */
const SLOTS: [RegExp, (match: RegExpExecArray) => string][] = [
  [
    /\b(?:I|we) (?:now |currently |just |still |recently )*(?:live|moved|relocated|am living|are living) (?:in|to) (.+)/i,
    () => 'lives in',
  ],
  [
    /\b(?:I|we) (?:now |currently |just |still |recently )*(?:work|am working|started working) (?:at|for) (.+)/i,
    () => 'works at',
  ],
  [/\bI(?:'m| am) (?:now |currently )?(\d{1,3}) years old/i, () => 'age'],
  [
    /\bmy (favou?rite [\p{L} ]+?|name|email|phone(?: number)?|address|job|age|birthday|wife|husband|partner|boss|manager|budget|[\p{L}]+'s name) (?:is|are)(?: now)? (.+)/iu,
    (m) => `my ${m[1]?.toLowerCase().replace('favour', 'favor')}`,
  ],
  [
    /\bI(?: now| also| really)? (?:like|love|prefer|enjoy|hate|dislike|can't stand|don't like|do not like|no longer like) (.+)/i,
    (m) => `liking ${contentWords(m[1] ?? '').join(' ')}`,
  ],
];

function slotOf(sentence: string): { slot: string; value: string } | undefined {
  for (const [pattern, name] of SLOTS) {
    const match = pattern.exec(sentence);
    if (match) return { slot: name(match), value: contentWords(sentence).join(' ') };
  }
  return undefined;
}

/** By rules: what says the same is nothing new; another value of the same thing takes the older one's place. */
function decideOne({ candidate, neighbours }: Question): Decision {
  const stated = slotOf(candidate.content);
  for (const neighbour of neighbours) {
    if (
      wordOverlap(candidate.content, neighbour.content) >= SAME &&
      slotOf(neighbour.content)?.value === stated?.value
    ) {
      return { kind: 'nothing', known: neighbour.id };
    }
    const other = stated && slotOf(neighbour.content);
    if (!other || other.slot !== stated.slot || other.value === stated.value) continue;
    return neighbour.at <= candidate.at
      ? { kind: 'supersede', id: neighbour.id }
      : { kind: 'nothing', known: neighbour.id };
  }
  return { kind: 'add' };
}
