import type { Script } from './scripted-model.ts';

/** How one provider's API puts what a scripted model says, by its documentation. */
export interface Wire {
  base: string;
  streamType: string;
  streams(path: string, body: { stream?: boolean }): boolean;
  whole(script: Script): object;
  pieces(script: Script): (string | Uint8Array)[];
}

/** What was used, in the words of one of OpenAI's APIs. */
export type OpenaiUsage = (usage: { input: number; output: number; cacheRead: number }) => object;

/** A text in pieces, so that a stream has several. */
export function halves(text: string): [string, string] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

export const sse = (data: object, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;
