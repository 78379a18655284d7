import { decimal, optionalWord } from '../../config/setting.ts';

export const memory = {
  extractionDelaySeconds: decimal({
    about: 'Time after the last event of a session until long-term records are made of its events.',
    unit: 'seconds',
    default: 1,
    min: 0,
    max: 3600,
  }),
  model: optionalWord({
    about:
      'Name of the model that makes long-term records: default = that of models.url, or one of models.named; none = rules make them. If not set, it is the model of models.default.',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
};
