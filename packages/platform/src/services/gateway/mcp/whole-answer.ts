import type { DocumentValue } from '@agentplatform/contract';
import { isObject } from '../tools/json-pointer.ts';

/**
 * The answer to a message as one JSON value: of a stream the message that answers, without what is told before it. Undefined where there is no body.
 * An answer that is no JSON stays as it is, as a text.
 */
export async function wholeAnswer(answer: Response): Promise<DocumentValue | undefined> {
  const text = await answer.text();
  if (text === '') return undefined;
  if (!/^text\/event-stream/.test(answer.headers.get('content-type') ?? '')) return json(text);
  const messages = text
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => json(line.slice('data:'.length).trim()));
  return messages.find((message) => isObject(message) && ('result' in message || 'error' in message));
}

function json(text: string): DocumentValue {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
