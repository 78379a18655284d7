import type { Message } from './message.ts';

/** Messages that one call of a model reads. */
export interface Portion {
  /** The end of what an earlier portion has read, so that what follows is understood. */
  before: readonly Message[];
  messages: readonly Message[];
}

/** Messages of the portion before that are shown again at most, and their share of the size. */
const OVERLAP_MESSAGES = 2;
const OVERLAP_SHARE = 0.1;
/** A text this short is not cut any further, in characters. */
const LEAST_TEXT = 200;

/** Cuts messages into portions of at most `size` characters, in order; a longer message is cut into pieces that overlap. Nothing is left out. */
export function portionsOf(messages: readonly Message[], size: number): Portion[] {
  const overlap = Math.floor(size * OVERLAP_SHARE);
  const room = size - overlap;
  const portions: Portion[] = [];
  let current: Message[] = [];
  let held = 0;
  const close = (): void => {
    if (current.length > 0)
      portions.push({ before: lastOf(portions.at(-1)?.messages ?? [], overlap), messages: current });
    current = [];
    held = 0;
  };
  for (const piece of messages.flatMap((message) => piecesOf(message, room))) {
    if (held + piece.text.length > room) close();
    current.push(piece);
    held += piece.text.length;
  }
  close();
  return portions;
}

/** The portion in two; undefined when it is too small for that. */
export function halved({ before, messages }: Portion): [Portion, Portion] | undefined {
  const [only] = messages;
  const parts = messages.length === 1 && only ? piecesOf(only, Math.ceil((only.text.length * 2) / 3)) : messages;
  if (parts.length < 2 || (messages.length === 1 && (only?.text.length ?? 0) < LEAST_TEXT)) return undefined;
  const middle = Math.ceil(parts.length / 2);
  const first = parts.slice(0, middle);
  const size = first.reduce((sum, { text }) => sum + text.length, 0);
  return [
    { before, messages: first },
    { before: lastOf(first, Math.floor(size / 2)), messages: parts.slice(middle) },
  ];
}

/** A message in pieces of at most `size` characters, each of which begins with the end of the one before; cut between words where there are any. */
function piecesOf(message: Message, size: number): Message[] {
  const { text } = message;
  if (text.length <= size) return [message];
  const overlap = Math.floor(size * OVERLAP_SHARE);
  const pieces: Message[] = [];
  for (let start = 0; ; ) {
    if (text.length - start <= size) return [...pieces, { ...message, text: text.slice(start) }];
    const end = between(text, start + Math.ceil(size / 2), start + size);
    pieces.push({ ...message, text: text.slice(start, end) });
    start = between(text, end - 2 * overlap, end - overlap);
  }
}

/** The last place to cut in `text` after `from` and up to `to`: behind a space, and never within a character. */
function between(text: string, from: number, to: number): number {
  for (let at = to; at > from; at -= 1) if (/\s/.test(text[at - 1] ?? '')) return at;
  return /[\uDC00-\uDFFF]/.test(text[to] ?? '') ? to - 1 : to;
}

function lastOf(messages: readonly Message[], size: number): Message[] {
  const kept: Message[] = [];
  let held = 0;
  for (const message of messages.slice(-OVERLAP_MESSAGES).reverse()) {
    held += message.text.length;
    if (held > size) break;
    kept.unshift(message);
  }
  return kept;
}
