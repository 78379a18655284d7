import { startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { realSentences } from '../memory/sentences.ts';
import { thisMachine } from '../support/machine.ts';
import { partsOf } from '../support/options.ts';
import { BenchGateways } from './bench-gateways.ts';
import { directContestant, gatewayContestants } from './contestants.ts';
import { atHalf } from './half-load.ts';
import { list } from './listing.ts';
import { besideNeighbours } from './neighbours.ts';
import { type OrdersApi, startOrdersApi } from './orders-api.ts';
import { type OpenPeers, openPeers } from './peers.ts';
import { measureProcesses } from './processes.ts';
import { register } from './registration.ts';
import { type Calls, type GatewayResults, keepResults, PARTS, type Part, type Parts, table } from './results.ts';
import { search } from './searching.ts';
import { takeTurns } from './throughput.ts';

const FULL = {
  turns: 5,
  half: { seconds: 3, rounds: 3 },
  lists: 300,
  registrations: 5,
  queries: 200,
  pairs: 5,
  beside: 5,
};
const QUICK = {
  turns: 2,
  half: { seconds: 2, rounds: 2 },
  lists: 50,
  registrations: 1,
  queries: 30,
  pairs: 2,
  beside: 2,
};
const LISTED = 1_000;
const SEARCHED = 5_000;

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/**
 * `npm run bench -- gateway [--quick] [--keep] [--only PART,PART]`: a tool of a small API, called through a gateway by signature and by token, through ContextForge,
 * through FastMCP, and the API by itself, taking turns; then a target beside a dead one, lists, a large document, search, and two servers on one database. The load comes from
 * this process, on the same machine. Prints a table; `--keep` writes each part, once it is measured, to bench/results/gateway.json and docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const parts = partsOf(args, PARTS);
  const api = await startOrdersApi();
  const results: GatewayResults = {};
  try {
    const gateways = await BenchGateways.start();
    try {
      for (const part of parts) {
        const machine = thisMachine({});
        say(`${part} …`);
        const { found, versions = {} } = await measure(part, { gateways, api, size: quick ? QUICK : FULL });
        const taken = { at: new Date().toISOString(), quick, machine: { ...machine, tools: versions } };
        Object.assign(results, { [part]: { taken, found } });
        if (args.includes('--keep')) await keepResults(results);
      }
    } finally {
      await gateways.end();
    }
  } finally {
    await api.end();
  }
  process.stdout.write(`${table(results)}\n`);
}

interface Measuring {
  gateways: BenchGateways;
  api: OrdersApi;
  size: typeof FULL;
}

async function measure(
  part: Part,
  { gateways, api, size }: Measuring,
): Promise<{ found: Parts[Part]; versions?: OpenPeers['versions'] }> {
  switch (part) {
    case 'calls':
      return measureCalls(gateways, api, size);
    case 'neighbours':
      return { found: await besideNeighbours(gateways, api, size.beside) };
    case 'lists':
      return { found: await list(gateways, api.url, await realSentences(LISTED), size.lists) };
    case 'document':
      return { found: await register(gateways, api.url, size.registrations) };
    case 'search': {
      const sentences = await realSentences(SEARCHED + size.queries);
      const searched = { sentences: sentences.slice(0, SEARCHED), queries: sentences.slice(SEARCHED) };
      return { found: await search(gateways, api.url, searched) };
    }
    case 'servers':
      return { found: await measureProcesses(api, size.pairs) };
  }
}

async function measureCalls(
  gateways: BenchGateways,
  api: OrdersApi,
  { turns, half }: typeof FULL,
): Promise<{ found: Calls; versions: OpenPeers['versions'] }> {
  const issuer = await startOidcServer();
  say('Peers …');
  const { contestants: peers, versions, missing, end } = await openPeers(api);
  try {
    const contestants = [directContestant(api), ...(await gatewayContestants(gateways, api, issuer)), ...peers];
    say(`Calls of ${contestants.map(({ name }) => name).join(', ')} …`);
    const measured = await takeTurns(contestants, turns, missing);
    say('Half of saturation …');
    return { versions, found: { missing, measured, half: await atHalf(contestants, measured, half) } };
  } finally {
    await end();
    await issuer.close();
  }
}
