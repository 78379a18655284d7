import { ServerGroup } from '../../tests/support/server-group.ts';
import { cpuSeconds } from '../support/cpu.ts';
import { median } from '../support/statistics.ts';
import { BenchGateways } from './bench-gateways.ts';
import { load, rightAnswer } from './load.ts';
import { callOf, type OrdersApi, ordersDocument, TOOL } from './orders-api.ts';
import { CONNECTIONS } from './throughput.ts';

/** What one server can do, and two on the same PostgreSQL, with as many connections in all; medians. */
export interface Processes {
  /** Signed calls a second. */
  one: number;
  two: number;
  /** The median of the turns' own ratios. */
  ratio: number;
  /** Of one core, what the one server used, all of its threads together. */
  cores: number;
  /** Microseconds of CPU that a call took of it. */
  cpuMicros: number;
}

const TURN_MS = 2_000;
const SERVERS = {
  sandbox: ['--sandbox', 'process'],
  leaseSeconds: 60,
  env: {
    AGENTPLATFORM_OUTBOUND_ALLOW_PRIVATE_EGRESS: '127.0.0.0/8',
    AGENTPLATFORM_QUOTAS_REQUESTS_PER_SECOND: '0',
  },
};

/** Two servers that take turns: the first by itself, then both. */
export async function measureProcesses({ url }: OrdersApi, turns: number): Promise<Processes> {
  const group = await ServerGroup.open(SERVERS);
  try {
    const first = new BenchGateways(await group.start('a'));
    const second = new BenchGateways(await group.start('b'), first.platform.credentials);
    const id = await first.create('shared');
    await first.register(id, 'shop', { inlinePayload: ordersDocument(url) });
    const taken = { one: [] as number[], two: [] as number[], cores: [] as number[], micros: [] as number[] };
    // The first turn warms up.
    for (let at = -1; at < turns; at += 1) {
      const before = await cpuSeconds(first.platform.pid);
      const one = await callsOf([first], id);
      const used = (await cpuSeconds(first.platform.pid)) - before;
      const two = await callsOf([first, second], id);
      if (at < 0) continue;
      taken.one.push(one);
      taken.two.push(two);
      taken.cores.push(used / (TURN_MS / 1000));
      taken.micros.push((used / (one * (TURN_MS / 1000))) * 1e6);
    }
    for (const { clients } of [first, second]) clients.close();
    const ratio = median(taken.two.map((two, at) => two / (taken.one[at] ?? Number.NaN)));
    const [cores, cpuMicros] = [median(taken.cores), median(taken.micros)];
    return { one: median(taken.one), two: median(taken.two), ratio, cores, cpuMicros };
  } finally {
    await group.close();
  }
}

async function callsOf(servers: readonly BenchGateways[], gatewayId: string): Promise<number> {
  const body = callOf(`shop___${TOOL}`);
  const lanes = await Promise.all(
    servers.map(async (server) => ({ port: server.port, requests: await server.signed(gatewayId, body) })),
  );
  let bytes = 0;
  for (const lane of lanes) bytes = await rightAnswer(`port ${lane.port}`, lane);
  const { perSecond } = await load({ lanes, connections: CONNECTIONS, ms: TURN_MS, bytes });
  await Promise.all(servers.map((server) => server.settled()));
  return perSecond;
}
