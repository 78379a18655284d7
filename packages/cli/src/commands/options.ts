import { InvalidArgumentError } from '@commander-js/extra-typings';

/** Parses a port of an option; 0 is none, because the user is to find it. */
export function portOption(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535)
    throw new InvalidArgumentError('It must be a port number from 1 to 65535.');
  return port;
}

/** Parses a time of an option. */
export function secondsOption(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds.');
  return Number(text);
}
