/** The last line of a stream of OpenAI's chat completions. */
const DONE = 'data: [DONE]\n\n';

/** Events as they stand in a stream of `text/event-stream`: by their type where they have one, as Anthropic and OpenAI's responses do. */
export async function* eventsAsText(
  events: AsyncIterable<object>,
  { done }: { done: boolean },
): AsyncGenerator<string> {
  for await (const event of events) yield eventAsText(event);
  if (done) yield DONE;
}

/** One event of such a stream. */
export function eventAsText(event: object): string {
  const name = 'type' in event && typeof event.type === 'string' ? `event: ${event.type}\n` : '';
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}
