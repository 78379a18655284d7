import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type DockerRecord, readLabels, recordLabels } from './docker-record.ts';

const record: fc.Arbitrary<DockerRecord> = fc.record({
  id: fc.string(),
  labels: fc.dictionary(
    fc.string().filter((name) => name !== '__proto__'),
    fc.string(),
    { noNullPrototype: true },
  ),
  isolation: fc.string(),
  slot: fc.nat(255),
  ip: fc.ipV4(),
  user: fc.string(),
  cwd: fc.string(),
  network: fc.record({
    egress: fc.constantFrom('none', 'restricted'),
    allowCidrs: fc.array(fc.string()),
    hostPorts: fc.array(fc.nat(65_535)),
    endpoints: fc.array(
      fc.record({ host: fc.domain(), addresses: fc.array(fc.ipV4()), port: fc.nat(65_535) }, { noNullPrototype: true }),
    ),
    sandboxEndpoint: fc.boolean(),
  }),
});

it('comes back from the labels as it was', () => {
  fc.assert(
    fc.property(record, (given) => {
      expect(readLabels(recordLabels(given))).toEqual({ ...given, labels: { ...given.labels } });
    }),
  );
});

it('is none in labels of anybody else', () => {
  expect(readLabels(undefined)).toBeUndefined();
  expect(readLabels({})).toBeUndefined();
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const found = readLabels({ 'agentplatform.sandbox': text });
      if (found) expect(readLabels(recordLabels(found))).toEqual(found);
    }),
  );
});
