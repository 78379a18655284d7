import { choice, integer, optionalWord, seconds } from '../../config/setting.ts';

export const codeInterpreter = {
  image: choice(['full', 'slim'], {
    about:
      'What code-interpreter sessions run on: slim = the kernels alone, full = with the libraries for data work; until that one is made, slim serves.',
    default: 'full',
  }),
  prepare: choice(['on', 'off'], {
    about:
      'Makes the images of code-interpreter sessions, and sessions of aws.codeinterpreter.v1 that stand ready, in the background when the platform starts; off = when the first session is asked for.',
    default: 'on',
  }),
  builtInNetwork: choice(['PUBLIC', 'SANDBOX'], {
    about: 'Network of aws.codeinterpreter.v1: PUBLIC = what sandboxes may reach, SANDBOX = nothing.',
    default: 'PUBLIC',
  }),
  subnets: optionalWord({
    about: 'Networks that code interpreters in VPC mode may name, e.g. subnet-0123456789abcdef0=10.1.0.0/16.',
    unit: 'subnet=CIDR[,…]',
    pattern: /^subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+(,subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+)*$/,
    expected: 'subnet ids with ranges, such as subnet-0123456789abcdef0=10.1.0.0/16',
  }),
  warmSessions: integer({
    about: 'Sessions kept ready for an interpreter that was used lately.',
    default: 1,
    min: 0,
    max: 64,
  }),
  executionSeconds: seconds({
    about: 'How long code, or a command that is waited for, may run.',
    default: 600,
    min: 1,
    max: 28_800,
  }),
};
