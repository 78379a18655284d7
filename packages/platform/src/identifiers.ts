import { randomInt, randomUUID } from 'node:crypto';

const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const LOWER = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** Fresh identifiers of every kind; all from the system's random source. */
export const identifiers = {
  request: (): string => randomUUID(),
  /** 36 characters: within the 33 that a session id needs. */
  session: (): string => randomUUID(),
  /** What follows the name in the id of a resource. */
  suffix: (): string => pick(ALPHANUMERIC, 10),
  sandbox: (): string => `s-${pick(LOWER, 16)}`,
};

function pick(alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}
