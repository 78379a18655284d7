import { decimal, optionalWord } from '../../config/setting.ts';

export const memory = {
  extractionDelaySeconds: decimal({
    about: 'How long events of a session may gather before long-term records are made of them together.',
    unit: 'seconds',
    default: 1,
    min: 0,
    max: 3600,
  }),
  model: optionalWord({
    about:
      'Name of the model that makes long-term records of conversations: default = that of models.url, or one of models.named; none = they are made by rules, though there is a model. That of models.default when not set.',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
};
