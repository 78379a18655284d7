import { startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { realSentences } from '../memory/sentences.ts';
import { thisMachine } from '../support/machine.ts';
import { BenchGateways } from './bench-gateways.ts';
import { directContestant, gatewayContestants } from './contestants.ts';
import { atHalf } from './half-load.ts';
import { list } from './listing.ts';
import { besideNeighbours } from './neighbours.ts';
import { type OrdersApi, startOrdersApi } from './orders-api.ts';
import { type OpenPeers, openPeers } from './peers.ts';
import { measureProcesses } from './processes.ts';
import { register } from './registration.ts';
import { type GatewayResults, keepResults, table } from './results.ts';
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
 * `npm run bench -- gateway [--quick] [--keep]`: a tool of a small API, called through a gateway by signature and by token, through ContextForge,
 * through FastMCP, and the API by itself, taking turns; then a target beside a dead one, lists, a large document, search, and two servers on one database. The load comes from
 * this process, on the same machine. Prints a table; `--keep` writes bench/results/gateway.json and docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const machine = thisMachine({});
  const api = await startOrdersApi();
  try {
    const { versions, ...measured } = await measure(api, quick ? QUICK : FULL);
    const at = new Date().toISOString();
    const results: GatewayResults = { at, quick, machine: { ...machine, tools: versions }, ...measured };
    process.stdout.write(`${table(results)}\n`);
    if (args.includes('--keep')) await keepResults(results);
  } finally {
    await api.end();
  }
}

type Calls = Pick<GatewayResults, 'missing' | 'measured' | 'half'> & Pick<OpenPeers, 'versions'>;
type AllMeasured = Calls & Pick<GatewayResults, 'neighbours' | 'listing' | 'registration' | 'searching' | 'processes'>;

async function measure(api: OrdersApi, size: typeof FULL): Promise<AllMeasured> {
  const gateways = await BenchGateways.start();
  try {
    const calls = await measureCalls(gateways, api, size);
    say('A dead neighbour …');
    const neighbours = await besideNeighbours(gateways, api, size.beside);
    const sentences = await realSentences(SEARCHED + size.queries);
    say('Lists …');
    const listing = await list(gateways, api.url, sentences.slice(0, LISTED), size.lists);
    say('GitHub …');
    const registration = await register(gateways, api.url, size.registrations);
    if (!registration) calls.missing.push('GitHub’s document is not measured: npm could not bring it.');
    say('Search …');
    const searched = { sentences: sentences.slice(0, SEARCHED), queries: sentences.slice(SEARCHED) };
    const searching = await search(gateways, api.url, searched);
    say('Two servers …');
    return {
      ...calls,
      neighbours,
      listing,
      registration,
      searching,
      processes: await measureProcesses(api, size.pairs),
    };
  } finally {
    await gateways.end();
  }
}

async function measureCalls(gateways: BenchGateways, api: OrdersApi, { turns, half }: typeof FULL): Promise<Calls> {
  const issuer = await startOidcServer();
  say('Peers …');
  const { contestants: peers, versions, missing, end } = await openPeers(api);
  try {
    const contestants = [directContestant(api), ...(await gatewayContestants(gateways, api, issuer)), ...peers];
    say(`Calls of ${contestants.map(({ name }) => name).join(', ')} …`);
    const measured = await takeTurns(contestants, turns, missing);
    say('Half of saturation …');
    return { versions, missing, measured, half: await atHalf(contestants, measured, half) };
  } finally {
    await end();
    await issuer.close();
  }
}
