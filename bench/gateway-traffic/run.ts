import { BenchGateways } from '../gateway/bench-gateways.ts';
import { thisMachine } from '../support/machine.ts';
import { numberAfter, partsOf } from '../support/options.ts';
import { gatewayContestants, plain } from './contestants.ts';
import { limitTimes } from './limits.ts';
import { type Peer, startLitellm } from './litellm.ts';
import { type Measured, type Size, takeTurns } from './measure.ts';
import { type Provider, startProvider } from './provider.ts';
import { keepResults, type TrafficResults, tables } from './results.ts';

const FULL: Size = { turns: 5, streams: 100, loadMs: 2_000 };
const QUICK: Size = { turns: 3, streams: 40, loadMs: 1_000 };

const FULL_LIMITS = { checks: 100_000, draws: 500 };
const QUICK_LIMITS = { checks: 20_000, draws: 200 };

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/**
 * `npm run bench -- gateway-traffic [--quick] [--keep] [--only streams|limits] [--seconds N]`: a scripted provider in the format of OpenAI, asked by itself, through a passthrough target,
 * through a target of inference, and through LiteLLM's proxy, taking turns; and what a rate limit costs, by itself. The load comes from this process, on the same machine. Prints a table;
 * `--keep` writes bench/results/gateway-traffic.json and docs/benchmarks.md. With `--only` the other half stays as it was kept; with `--seconds` no turn
 * begins after so long.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const parts = partsOf(args, ['limits', 'streams']);
  const seconds = numberAfter(args, '--seconds');
  const results: TrafficResults = {};
  const few = quick || seconds !== undefined;
  const taken = () => ({ at: new Date().toISOString(), quick: few, machine: thisMachine({}) });
  if (parts.includes('limits')) {
    say('Rate limits …');
    const { checks, draws } = quick ? QUICK_LIMITS : FULL_LIMITS;
    results.limits = { ...taken(), ...(await limitTimes(checks, draws)) };
  }
  if (parts.includes('streams')) {
    const about = taken();
    const provider = await startProvider();
    try {
      const size = { ...(quick ? QUICK : FULL), ...(seconds !== undefined && { seconds }) };
      const { versions, ...measured } = await measure(provider, size);
      results.streams = { ...about, machine: { ...about.machine, tools: versions }, ...measured };
    } finally {
      await provider.end();
    }
  }
  process.stdout.write(`${tables(results)}\n`);
  if (args.includes('--keep')) await keepResults(results);
}

interface AllMeasured {
  versions: Record<string, string>;
  missing: string[];
  measured: Measured[];
}

async function measure(provider: Provider, size: Size): Promise<AllMeasured> {
  const gateways = await BenchGateways.start();
  const missing: string[] = [];
  let peer: Peer | undefined;
  try {
    const own = await gatewayContestants(gateways, provider);
    say('LiteLLM …');
    peer = await startLitellm(provider).catch((error: unknown) => {
      missing.push(`LiteLLM is not measured: ${String(error).slice(0, 300)}.`);
      return undefined;
    });
    const contestants = [plain('direct', 'direct', provider.port), ...own, ...(peer ? [peer.contestant] : [])];
    say(`Streams of ${contestants.map(({ name }) => name).join(', ')} …`);
    const measured = await takeTurns(contestants, size, missing, say);
    return { versions: peer ? { LiteLLM: peer.version } : {}, missing, measured };
  } finally {
    await peer?.end();
    await gateways.end();
  }
}
