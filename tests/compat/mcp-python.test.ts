import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type FlowGateways, LINK, PAGE, REST, startFlowGateways } from '../support/flow-gateways.ts';
import { pythonWith } from '../support/python.ts';

const root = join(import.meta.dirname, '../..');
const packages = await pythonPackages(root, join(root, 'tests/python-mcp.txt'));

let flows: FlowGateways;

describe.skipIf(packages === undefined)('the official Python client, unmodified', () => {
  beforeAll(async () => {
    flows = await startFlowGateways();
  });
  afterAll(() => flows?.close());

  it.each(['signed', 'by token'] as const)(
    'pings, turns pages, is told, asked and cancels in both eras: %s',
    async (how) => {
      const { accessKeyId: key, secretAccessKey: secret } = flows.platform.credentials;
      const { region } = flows.platform.ready;
      const by = how === 'signed' ? { key, secret, region } : { token: await flows.token() };
      // One call for each era and server.
      const waits = [flows.nextWait(), flows.nextWait(), flows.nextWait()];
      const script = join(root, 'tests/compat/mcp_client.py');
      const seen = await pythonWith(packages ?? '').run(script, { url: flows.urls[how], ...by });
      const backend = {
        told: [1, 2, 3],
        form: expect.stringContaining('Ada'),
        link: expect.stringContaining('accept'),
      };
      const asked = [
        ['form', 'Who?', null],
        ['url', 'Sign in.', LINK],
      ];
      const pages = [PAGE, REST, null];
      expect(seen).toEqual({
        auto: { version: '2026-07-28', pages, asked, newer: backend },
        legacy: { version: '2025-11-25', pages, asked: [...asked, ...asked], newer: backend, older: backend },
      });
      await Promise.all(waits.map(({ ended }) => ended));
    },
  );
});
