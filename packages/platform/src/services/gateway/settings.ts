import { optionalWord } from '../../config/setting.ts';

export const gateway = {
  roleCredentials: optionalWord({
    about:
      'File with access keys, by names of roles, that gateways sign requests to other services with. It is written like a credentials file of AWS; hosts = names the hosts that get such requests.',
    unit: 'path',
    pattern: /^\S.*$/,
    expected: 'the path of a file',
  }),
};
