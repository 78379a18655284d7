/** Any JSON value: what a `document` shape holds. */
export type DocumentValue =
  | null
  | boolean
  | number
  | string
  | DocumentValue[]
  | { [key: string]: DocumentValue | undefined };

/** A body that is handed through in parts and never held as a whole; Node's `Readable` is one. */
export type StreamingBlob = AsyncIterable<Uint8Array>;

/** Events in the order in which they are to reach the client. */
export type EventStream<Event> = AsyncIterable<Event>;

/** Exactly one of the members of `T`, as the wire's unions demand. */
export type OneOf<T> = {
  [K in keyof T]: { [P in K]: T[P] } & { [P in Exclude<keyof T, K>]?: undefined };
}[keyof T];
