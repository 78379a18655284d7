import { integer, seconds } from '../../config/setting.ts';

export const functions = {
  concurrency: integer({
    about: 'Events of one function that are handled at once, each in a sandbox of its own; further ones are refused.',
    default: 10,
    min: 1,
    max: 1000,
  }),
  idleSeconds: seconds({
    about: 'How long a sandbox of a function stays for the next event.',
    default: 300,
    min: 1,
    max: 7200,
  }),
};
