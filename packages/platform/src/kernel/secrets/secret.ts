import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** A secret text that shows itself only to `reveal`: printing, logging, serializing or comparing it gives nothing away. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The text itself. Whoever calls this keeps it out of logs, errors and traces. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [Symbol.toPrimitive](): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}
