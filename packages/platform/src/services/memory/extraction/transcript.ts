import type { Question } from './candidate.ts';
import type { Message } from './message.ts';

/** Tags that a prompt puts around text: in the text itself they are words like others. */
const MARK = /<(?=\/?\s*(?:conversation|so-far|episode|items?)\b)/gi;

/** Text as a prompt shows it: it cannot end the block that it stands in, nor begin a line that looks like another's. */
export function quoted(text: string): string {
  return text.replace(MARK, '&lt;').replace(/\r\n?|[\n\u2028\u2029]/g, '\n   ');
}

/** Messages with their numbers, for a model; `before` are the ones that were read already. */
export function transcript(messages: readonly Message[], before: number): string {
  const lines = messages.map(
    ({ at, role, text }, index) => `${index + 1}. [${at.toISOString().slice(0, 16)}] ${role}: ${quoted(text)}`,
  );
  const known =
    before === 0 ? '' : `Messages 1 to ${before} have been read before; they are here to be understood by.\n`;
  return `${known}<conversation>\n${lines.join('\n')}\n</conversation>`;
}

/** One question about a new statement and what is known, for a model. */
export function itemOf({ candidate, neighbours }: Question, number: number): string {
  const known = neighbours.map(({ content, at }, index) => `  ${index + 1}. [${day(at)}] ${quoted(content)}`);
  return `Item ${number}: [${day(candidate.at)}] ${quoted(candidate.content)}\nKnown:\n${known.join('\n')}`;
}

function day(at: Date): string {
  return at.toISOString().slice(0, 10);
}
