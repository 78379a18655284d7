import { choice, integer, optionalWord } from '../../config/setting.ts';

export const browser = {
  prepare: choice(['on', 'off'], {
    about:
      'Makes the image of browser sessions, and sessions of aws.browser.v1 that stand ready, in the background when the platform starts; off = when the first session is asked for.',
    default: 'off',
  }),
  embedders: optionalWord({
    about:
      'Origins whose pages may show the live view of a session in a frame, beside the platform’s own, e.g. https://console.example.com.',
    unit: 'origin[,…]',
    pattern: /^https?:\/\/[a-zA-Z0-9.:[\]-]{1,255}(,https?:\/\/[a-zA-Z0-9.:[\]-]{1,255}){0,19}$/,
    expected: 'origins such as https://console.example.com, separated by commas',
  }),
  subnets: optionalWord({
    about: 'Networks that browsers in VPC mode may name, e.g. subnet-0123456789abcdef0=10.1.0.0/16.',
    unit: 'subnet=CIDR[,…]',
    pattern: /^subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+(,subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+)*$/,
    expected: 'subnet ids with ranges, such as subnet-0123456789abcdef0=10.1.0.0/16',
  }),
  warmSessions: integer({
    about: 'Sessions kept ready for a browser that was used lately.',
    default: 1,
    min: 0,
    max: 64,
  }),
};
