import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readReadyLine } from './ready-line.ts';

const ready = {
  ready: true,
  endpoint: 'http://127.0.0.1:4100',
  credentialsFile: '/d/credentials',
  profile: 'agentplatform',
  region: 'us-east-1',
  accountId: '123456789012',
  defaultRoleArn: 'arn:aws:iam::123456789012:role/default',
  isolation: 'container',
};

it('reads the line that says ready', () => {
  expect(readReadyLine(JSON.stringify(ready))).toMatchObject({ endpoint: ready.endpoint, isolation: 'container' });
});

it('names the field that is missing', () => {
  expect(() => readReadyLine(JSON.stringify({ ...ready, region: undefined }))).toThrow('no region');
  expect(() => readReadyLine(JSON.stringify({ ...ready, accountId: 1 }))).toThrow('no accountId');
});

it('passes over any other line', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (line) => {
      expect(readReadyLine(line)).toBeUndefined();
    }),
  );
});
