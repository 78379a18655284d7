import { choice, integer, optionalWord, seconds } from '../../config/setting.ts';

export const codeInterpreter = {
  image: choice(['full', 'slim'], {
    about:
      'Image of code-interpreter sessions: slim = only the kernels, full = with libraries for data work. The slim image is used until the full one is made.',
    default: 'full',
  }),
  prepare: choice(['on', 'off'], {
    about:
      'When the platform makes the images of code-interpreter sessions: on = in the background when it starts, together with sessions of aws.codeinterpreter.v1 in advance; off = at the first session.',
    default: 'on',
  }),
  builtInNetwork: choice(['PUBLIC', 'SANDBOX'], {
    about: 'Network of aws.codeinterpreter.v1: PUBLIC = all that sandboxes may reach, SANDBOX = none.',
    default: 'PUBLIC',
  }),
  subnets: optionalWord({
    about: 'Networks that code interpreters in VPC mode may name, e.g. subnet-0123456789abcdef0=10.1.0.0/16.',
    unit: 'subnet=CIDR[,…]',
    pattern: /^subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+(,subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+)*$/,
    expected: 'subnet ids with ranges, such as subnet-0123456789abcdef0=10.1.0.0/16',
  }),
  warmSessions: integer({
    about: 'Sessions that are started in advance for an interpreter that was used lately.',
    default: 1,
    min: 0,
    max: 64,
  }),
  executionSeconds: seconds({
    about: 'Time limit for code and for commands that do not run in the background.',
    default: 600,
    min: 1,
    max: 28_800,
  }),
};
