import { decimal } from '../../config/setting.ts';

export const memory = {
  extractionDelaySeconds: decimal({
    about: 'How long events of a session may gather before long-term records are made of them together.',
    unit: 'seconds',
    default: 1,
    min: 0,
    max: 3600,
  }),
};
