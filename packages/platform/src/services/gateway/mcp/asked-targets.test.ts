import { pino } from 'pino';
import { expect, it } from 'vitest';
import { openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { ConsentNeeded } from '../outbound/consent-needed.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { Asking, TargetKind } from '../targets/target-kind.ts';
import { ToolError } from '../tool-error.ts';
import { AskedTargets } from './asked-targets.ts';

// What is read of them.
const gateway = { arn: 'arn:gateway', definition: {} } as Gateway;
const live = { targetConfiguration: { mcp: { mcpServer: {} } } };
const targets = ['first', 'second'].map((name) => ({ arn: `arn:${name}`, name, live }) as unknown as LiveTarget);
const asking = { caller: { requestId: 'request' }, signal: new AbortController().signal } as Asking;
const hints = { readOnly: true, destructive: false, idempotent: true };

/** A list of a gateway whose second server fails with that. */
function seen(failure: Error) {
  const kind: TargetKind = {
    type: 'MCP_SERVER',
    makeTools: async () => ({ tools: [], problems: [] }),
    call: async () => ({ content: [] }),
    isAsked: () => true,
    ask: async ({ target }) => {
      if (target.name === 'second') throw failure;
      return { problems: [], tools: [{ name: 'greet', description: '', inputSchema: { type: 'object' }, hints }] };
    },
  };
  const asked = new AskedTargets({ kinds: { mcpServer: kind }, log: pino({ level: 'silent' }) });
  return asked.seen(openGateway(gateway, targets, new Map()), asking);
}

it('a server that does not tell what it offers is named, and costs no other', async () => {
  const { open, silent } = await seen(new ToolError('it is away'));
  expect(open.tools.map(({ listed }) => listed)).toEqual(['first___greet']);
  expect(silent).toEqual([{ target: 'second', reason: 'it is away' }]);
});

it('where a person has to consent first, the list says where, and is not shorter instead', async () => {
  const url = 'https://here/consent';
  await expect(seen(new ConsentNeeded('second', url, 'urn:1'))).rejects.toMatchObject({
    code: -32042,
    data: { elicitations: [{ mode: 'url', url, elicitationId: 'urn:1' }] },
  });
});
