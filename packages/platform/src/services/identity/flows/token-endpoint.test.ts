import { None } from 'oauth4webapi';
import { expect, it } from 'vitest';
import type { Clock } from '../../../kernel/clock.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { OutboundError } from '../../../kernel/outbound/index.ts';
import { type OauthClient, TokenEndpoint } from './token-endpoint.ts';

const at: OauthClient = {
  server: { issuer: 'https://id.example', token_endpoint: 'https://id.example/token' },
  client: { client_id: 'agents' },
  authentication: None(),
  secret: undefined,
  certificateAuthority: undefined,
};
const grant = { type: 'client_credentials', parameters: new URLSearchParams() };

/** The pauses between the tries of one who asks while nobody answers, where chance says that. */
async function pauses(...chance: number[]): Promise<number[]> {
  const waited: number[] = [];
  const fake = new FakeClock();
  const clock: Clock = {
    ...{ now: () => fake.now(), monotonic: () => fake.monotonic() },
    after(ms, run) {
      waited.push(ms);
      const timer = setImmediate(run);
      return () => clearImmediate(timer);
    },
  };
  const outbound = {
    fetch: async () => {
      throw new OutboundError('CONNECTION_FAILED', 'nobody is there');
    },
  };
  const endpoint = new TokenEndpoint({ outbound, clock, random: () => chance.shift() ?? 0 });
  await expect(endpoint.ask(at, grant)).rejects.toMatchObject({ kind: 'unreachable' });
  return waited;
}

it('asks a provider that is away three times, after pauses that chance spreads from nothing to a bound that grows', async () => {
  expect(await pauses(0.5, 0.5)).toEqual([200, 400]);
  expect(await pauses(0, 0)).toEqual([0, 0]);
  expect(await pauses(0.99, 0.25)).toEqual([396, 200]);
});
