import type { ClientCapabilities } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { ElicitResult } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FlowGateways, LINK, PAGE, REST, SCHEMA, startFlowGateways } from '../support/flow-gateways.ts';
import { connectMcp, signingFetch } from '../support/gateway.ts';

/** What a client does in each of the flows, whichever it is. */
interface Flows {
  ping(): Promise<void>;
  listPage(cursor?: string): Promise<{ tools: { name: string }[]; nextCursor?: string | undefined }>;
  call(
    name: string,
    options?: { signal?: AbortSignal; onprogress?(told: { progress: number }): void },
  ): Promise<string>;
  /** Of what it was asked, by the mode. */
  asked: Record<string, unknown>[];
  close(): Promise<void>;
}

interface By {
  fetch?: typeof fetch;
  token?: string;
}

const CAPABILITIES: ClientCapabilities = { elicitation: { form: {}, url: {} } };
const answer = ({ mode = 'form' }: { mode?: string }): ElicitResult =>
  mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name: 'Ada' } };

/** The official client of now, in the version that it agrees on by itself, or as one of before. */
function newClient(mode: 'auto' | 'legacy') {
  return async (url: string, by: By): Promise<Flows> => {
    const client = await connectMcp(url, { mode, capabilities: CAPABILITIES, ...by });
    const asked: Flows['asked'] = [];
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push(params);
      return answer(params);
    });
    return {
      asked,
      // The newest version has none.
      ping: async () => void (mode === 'legacy' && (await client.ping())),
      listPage: (cursor) => client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }),
      call: async (name, options) => JSON.stringify((await client.callTool({ name, arguments: {} }, options)).content),
      close: () => client.close(),
    };
  };
}

/** The official client of the time before. */
async function oldClient(url: string, { fetch, token }: By): Promise<Flows> {
  const client = new OldClient({ name: 'old', version: '1' }, { capabilities: { elicitation: { form: {}, url: {} } } });
  const asked: Flows['asked'] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params);
    return { ...answer(params) };
  });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const transport = new OldTransport(new URL(url), { requestInit: { headers }, ...(fetch && { fetch }) });
  // The types of that package allow no undefined members.
  await client.connect(transport as Parameters<OldClient['connect']>[0]);
  return {
    asked,
    ping: async () => void (await client.ping()),
    listPage: (cursor) => client.listTools(cursor === undefined ? {} : { cursor }),
    call: async (name, options) =>
      JSON.stringify((await client.callTool({ name, arguments: {} }, undefined, options)).content),
    close: async () => {
      await transport.terminateSession();
      await client.close();
    },
  };
}

const CLIENTS = [
  { client: '2.x, without sessions', connect: newClient('auto'), backends: ['newer'] },
  { client: '2.x, in a session', connect: newClient('legacy'), backends: ['newer', 'older'] },
  { client: '1.x, in a session', connect: oldClient, backends: ['newer', 'older'] },
];
const CASES = CLIENTS.flatMap((one) => (['signed', 'by token'] as const).map((how) => ({ ...one, how })));

let flows: FlowGateways;

beforeAll(async () => {
  flows = await startFlowGateways();
});
afterAll(() => flows?.close());

describe.each(CASES)('client $client, $how', ({ connect, how, backends: asked }) => {
  let client: Flows;

  beforeAll(async () => {
    const by = how === 'signed' ? { fetch: signingFetch(flows.platform) } : { token: await flows.token() };
    client = await connect(flows.urls[how], by);
  });
  afterAll(() => client?.close());

  it('pings, and turns the pages of a list', async () => {
    await client.ping();
    const first = await client.listPage();
    expect(first.tools).toHaveLength(PAGE);
    const second = await client.listPage(first.nextCursor);
    expect(second.nextCursor).toBeUndefined();
    const names = new Set([...first.tools, ...second.tools].map(({ name }) => name));
    expect(names.size).toBe(PAGE + REST);
  });

  describe.each(asked)('and a server that is %s', (backend) => {
    it('is told of progress', async () => {
      const told: number[] = [];
      expect(await client.call(`${backend}___count`, { onprogress: ({ progress }) => told.push(progress) })).toContain(
        'did',
      );
      expect(told).toEqual([1, 2, 3]);
    });

    it('is asked for a form, and to go to an address', async () => {
      client.asked.length = 0;
      expect(await client.call(`${backend}___form`)).toContain('Ada');
      expect(await client.call(`${backend}___link`)).toContain('accept');
      expect(client.asked).toMatchObject([
        { message: 'Who?', requestedSchema: SCHEMA },
        { mode: 'url', url: LINK },
      ]);
    });

    it('ends a call at the server by cancelling it', async () => {
      const { begun, ended } = flows.nextWait();
      const cancel = new AbortController();
      const waiting = client.call(`${backend}___wait`, { signal: cancel.signal });
      await begun;
      cancel.abort();
      await expect(waiting).rejects.toThrow();
      await ended;
    });
  });
});
