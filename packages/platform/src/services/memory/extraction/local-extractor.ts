import { setImmediate as turn } from 'node:timers/promises';
import { type Candidate, type Decision, type Extractor, type Question, UnfitBatchError } from './candidate.ts';
import { relationOf } from './contradiction.ts';
import type { Message } from './message.ts';
import { resolveTimes } from './resolve-times.ts';
import { contentWords, sentencesOf } from './sentences.ts';
import {
  continues,
  isFact,
  isPreference,
  isSmallTalk,
  namesIn,
  subjectOf,
  withoutCourtesy,
  withSubject,
} from './statements.ts';

const MAX_DIGEST_SENTENCES = 12;
/** Of a sentence in a digest, in characters: twelve of them are one record. */
const MAX_DIGEST_SENTENCE = 1_000;
/** Sentences of the user after which a pronoun may be about something else. */
const SINCE = 3;
/** Each is compared with what is known: more would take longer than a job may. */
const MOST_FACTS = 5_000;

/**
 * Extraction by rules, without any model and without a network: sentences in which the user states something of himself or of what he names
 * become facts; sentences that state a liking become preferences; a summary is the most telling sentences in their order. It knows English only,
 * keeps the user's own words, whole, and does not infer. Where no rule can know, it keeps nothing: it makes no reflections.
 */
export const localExtractor: Extractor = {
  async facts({ messages, kind }, signal) {
    const candidates: Candidate[] = [];
    for await (const { content, message } of kind === 'userPreference'
      ? likings(messages, signal)
      : statements(messages, signal)) {
      candidates.push({ content: resolveTimes(content, message.at), at: message.at, eventIds: [message.eventId] });
      if (candidates.length > MOST_FACTS)
        throw new UnfitBatchError(
          `the batch states more than the ${MOST_FACTS} things that one job keeps; say it in smaller events`,
        );
    }
    return { candidates, unread: [] };
  },

  async digest({ messages, kind }, previous, signal) {
    const said: string[] = [];
    for await (const { sentence, message } of sentencesIn(messages, signal))
      if (!isSmallTalk(sentence) && sentence.length <= MAX_DIGEST_SENTENCE)
        said.push(`${speaker(message)}: ${resolveTimes(sentence, message.at)}`);
    const before = previous === undefined ? [] : previous.split('\n');
    const lines = [...new Set([...before, ...said])];
    if (lines.length === before.length) return previous;
    return kind === 'episodic' ? episode(lines) : mostTelling(lines, MAX_DIGEST_SENTENCES).join('\n');
  },

  reflect: async () => undefined,

  async decide(_batch, questions) {
    return questions.map(decideOne);
  },
};

interface Said {
  sentence: string;
  message: Message;
}

interface Stated {
  content: string;
  message: Message;
}

/** Message by message, and requests have their turn between them: a batch may be megabytes. */
async function* sentencesIn(messages: readonly Message[], signal: AbortSignal): AsyncGenerator<Said> {
  for (const message of messages) {
    await turn(undefined, { signal });
    for (const sentence of sentencesOf(message.text)) yield { sentence, message };
  }
}

/** What the user states, and what he goes on to say about it: then with what it is about, or the sentence that says so. */
async function* statements(messages: readonly Message[], signal: AbortSignal): AsyncGenerator<Stated> {
  let about: { subject: string | undefined; sentence: string } | undefined;
  let since = 0;
  const names = new Set<string>();
  for await (const { sentence, message } of sentencesIn(messages, signal)) {
    if (message.role !== 'USER') continue;
    const plain = withoutCourtesy(sentence);
    since += 1;
    if (isFact(sentence, names)) {
      since = 0;
      about = { subject: subjectOf(sentence), sentence: plain };
      yield { content: plain, message };
    } else if (about && since <= SINCE && continues(sentence)) {
      since = 0;
      const named = about.subject && withSubject(plain, about.subject);
      yield { content: named ?? `${about.sentence} ${plain}`, message };
    }
    for (const name of namesIn(plain)) names.add(name);
  }
}

async function* likings(messages: readonly Message[], signal: AbortSignal): AsyncGenerator<Stated> {
  for await (const { sentence, message } of sentencesIn(messages, signal))
    if (message.role === 'USER' && isPreference(sentence)) yield { content: withoutCourtesy(sentence), message };
}

function speaker({ role }: Message): string {
  return role === 'USER' ? 'User' : 'Assistant';
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

/** By rules: what says the same is nothing new; what contradicts a statement takes its place, unless it was said earlier. */
function decideOne({ candidate, neighbours }: Question): Decision {
  for (const { id, content, at } of neighbours) {
    const earlier = at > candidate.at;
    const relation = earlier ? relationOf(content, candidate.content) : relationOf(candidate.content, content);
    if (relation === 'none') continue;
    return relation === 'same' || earlier ? { kind: 'nothing', known: id } : { kind: 'supersede', id };
  }
  return { kind: 'add' };
}
