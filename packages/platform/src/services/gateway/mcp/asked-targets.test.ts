import { pino } from 'pino';
import { expect, it, vi } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { ConsentNeeded } from '../outbound/consent-needed.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { Asking, TargetKind } from '../targets/target-kind.ts';
import { ToolError } from '../tool-error.ts';
import type { Tool } from '../tools/index.ts';
import { AskedTargets } from './asked-targets.ts';

// What is read of them.
const gateway = { arn: 'arn:gateway', definition: {} } as Gateway;
const live = { targetConfiguration: { mcp: { mcpServer: {} } } };
const target = (name: string) => ({ arn: `arn:${name}`, name, live }) as unknown as LiveTarget;
const targets = ['first', 'second'].map(target);
const asking = { caller: { requestId: 'request' }, signal: new AbortController().signal } as Asking;
const hints = { readOnly: true, destructive: false, idempotent: true };

const tool = (name: string, description = ''): Tool => ({ name, description, inputSchema: { type: 'object' }, hints });

/** A list of a gateway whose servers answer so. */
function listed(ask: NonNullable<TargetKind['ask']>, { clock = new FakeClock(), all = targets } = {}) {
  const kind: TargetKind = {
    type: 'MCP_SERVER',
    makeTools: async () => ({ tools: [], problems: [] }),
    call: async () => ({ content: [] }),
    isAsked: () => true,
    ask,
  };
  const asked = new AskedTargets({ kinds: { mcpServer: kind }, clock, log: pino({ level: 'silent' }) });
  return asked.seen(openGateway(gateway, all, new Map()), asking);
}

/** A list of a gateway whose second server fails with that. */
const seen = (failure: Error) =>
  listed(async ({ target }) => {
    if (target.name === 'second') throw failure;
    return { problems: [], tools: [tool('greet')] };
  });

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

it('all of them together have twenty seconds; who has answered by then is listed', async () => {
  const clock = new FakeClock();
  const all = ['first', ...Array.from({ length: 40 }, (_, i) => `slow-${i}`)].map(target);
  const asked: string[] = [];
  const listing = listed(
    async ({ target: { name }, signal }) => {
      asked.push(name);
      if (name === 'first') return { problems: [], tools: [tool('greet')] };
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    },
    { clock, all },
  );
  await vi.waitFor(() => expect(asked).toHaveLength(17));
  await clock.advance(20_001);
  const { open, silent } = await listing;
  expect(open.tools.map(({ listed: name }) => name)).toEqual(['first___greet']);
  expect(silent).toHaveLength(40);
  expect(new Set(silent.map(({ reason }) => reason))).toEqual(
    new Set(['The targets of the gateway took more than 20 s together.']),
  );
  expect(asked).toHaveLength(17);
});

it('all of them together have 64 MiB; what does not fit is named', async () => {
  const half = 'x'.repeat(24 * 1024 * 1024);
  const all = ['a', 'b', 'c', 'd'].map(target);
  const { open, silent } = await listed(async () => ({ problems: [], tools: [tool('big', half)] }), { all });
  expect(open.tools.map(({ listed: name }) => name)).toEqual(['a___big', 'b___big']);
  const reason = 'The targets of the gateway that are asked offer more than 64 MiB together.';
  expect(silent).toEqual(['c', 'd'].map((name) => ({ target: name, reason })));
});
