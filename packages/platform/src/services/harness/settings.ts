import { choice } from '../../config/setting.ts';

export const harness = {
  prepare: choice(['on', 'off'], {
    about:
      'Makes the image of harness sessions in the background when the platform starts; off = when the first harness is created.',
    default: 'off',
  }),
};
