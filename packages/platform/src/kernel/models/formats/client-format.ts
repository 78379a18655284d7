import type { ModelAnswer, ModelEvent, ModelRequest } from '../model.ts';
import type { Members } from './json-body.ts';

/** What an answer says of itself. */
export interface Said {
  id: string;
  /** As the client named it. */
  model: string;
  /** Since the Unix epoch. */
  seconds: number;
  /** The body of the request. */
  asked: Members;
}

/** How clients of one API put a conversation into JSON, and want it answered. */
export interface ClientFormat {
  /** Throws ValidationException for what is not served and cannot be left out without changing what was meant. */
  request(body: Members): ModelRequest;
  answer(answer: ModelAnswer, said: Said): object;
  /** The events of a streamed answer, each a JSON object. Throws what the model's stream throws. */
  events(events: AsyncIterable<ModelEvent>, said: Said): AsyncIterable<object>;
}
