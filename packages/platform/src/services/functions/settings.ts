import { integer, seconds } from '../../config/setting.ts';

export const functions = {
  concurrency: integer({
    about:
      'Most events of one function that run at the same time, each in its own sandbox. Further events are refused.',
    default: 10,
    min: 1,
    max: 1000,
  }),
  idleSeconds: seconds({
    about: 'How long an idle sandbox of a function is kept for the next event.',
    default: 300,
    min: 1,
    max: 7200,
  }),
};
