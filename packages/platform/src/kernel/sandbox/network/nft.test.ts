import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type RunCommand, runCommand } from '../../processes/index.ts';
import { Nft } from './nft.ts';
import { baseRules, forgetRules, memberRules, policyRules } from './nft-rules.ts';

describe('nftables transactions', () => {
  const fake = (bad: string) => {
    const inputs: string[] = [];
    const run: RunCommand = async (_, options) => {
      inputs.push(options?.input ?? '');
      await sleep(5);
      return options?.input?.includes(bad)
        ? { code: 1, stdout: '', stderr: `Error: ${bad}\n more` }
        : { code: 0, stdout: '', stderr: '' };
    };
    return { nft: new Nft(run), inputs };
  };

  it('go together when they come together', async () => {
    const { nft, inputs } = fake('never');
    await Promise.all(['a\n', 'b\n', 'c\n'].map((text) => nft.apply(text)));
    expect(inputs).toEqual(['a\n', 'b\nc\n']);
  });

  it('fail alone', async () => {
    const { nft, inputs } = fake('bad');
    const results = await Promise.allSettled(['a\n', 'b\n', 'bad\n', 'c\n'].map((text) => nft.apply(text)));
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(inputs).toEqual(['a\n', 'b\nbad\nc\n', 'b\n', 'bad\n', 'c\n']);
    expect(results[2]).toMatchObject({ reason: { message: 'nft: Error: bad' } });
  });

  it('fail when nft is not there', async () => {
    await expect(new Nft(runCommand, '/no/nft').apply('x')).rejects.toThrow(/ENOENT/);
  });
});

describe('rules', () => {
  const table = `apnfttest${process.pid}`;
  const base = baseRules({
    table,
    subnet: '10.224.0.0/22',
    gateway: '10.224.0.1',
    nameserver: { address: '9.9.9.9', port: 53 },
  });
  const policy = {
    egress: 'restricted' as const,
    allowCidrs: ['10.0.0.0/8', '192.168.1.1/32'],
    hostPorts: [80, 443],
    endpoints: [{ host: 'a', addresses: ['10.9.8.7'], port: 11_434 }],
  };

  it('can be put in force again and again, keep their elements, and forget an interface wholly', async () => {
    const nft = new Nft(runCommand);
    try {
      await nft.apply(base);
      await nft.apply(memberRules(table, 'veth1') + policyRules(table, 'veth1', policy));
      await nft.apply(base);
      expect(await nft.list(table, 'members')).toEqual([{ ifname: 'veth1', element: '"veth1"' }]);
      expect(await nft.list(table, 'hostports')).toEqual(
        [80, 443].map((port) => ({ ifname: 'veth1', element: `"veth1" . ${port}` })),
      );
      expect((await nft.list(table, 'allowed')).map(({ element }) => element).sort()).toEqual([
        '"veth1" . 10.0.0.0/8',
        '"veth1" . 192.168.1.1',
      ]);
      expect(await nft.list(table, 'endpoints')).toEqual([{ ifname: 'veth1', element: '"veth1" . 10.9.8.7 . 11434' }]);
      await nft.apply(forgetRules(table, 'veth1', policy));
      await nft.apply(forgetRules(table, 'veth1', policy));
      for (const set of ['members', 'restricted', 'hostports', 'allowed', 'endpoints'])
        expect(await nft.list(table, set)).toEqual([]);
    } finally {
      await nft.apply(`delete table inet ${table}\n`);
    }
  });
});
