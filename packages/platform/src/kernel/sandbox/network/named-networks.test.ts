import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NamedNetworks, subnetMap } from './named-networks.ts';

const SETTING = 'codeInterpreter.subnets';
const subnet = 'subnet-0123456789abcdef0';
const networks = new NamedNetworks({
  setting: SETTING,
  public: { egress: 'restricted', allowCidrs: [], hostPorts: [] },
  subnets: subnetMap(`${subnet}=10.1.0.0/16,${subnet}=10.2.0.0/16`, SETTING),
});
const vpc = (...subnets: string[]) => ({
  networkMode: 'VPC' as const,
  vpcConfig: { subnets, securityGroups: ['sg-0123456789abcdef0'] },
});

describe('networks that the wire names', () => {
  it('SANDBOX is nothing, VPC is what is named', () => {
    expect(networks.policy({ networkMode: 'SANDBOX' })).toEqual({ egress: 'none', allowCidrs: [], hostPorts: [] });
    expect(networks.policy(vpc(subnet))).toEqual({
      egress: 'none',
      allowCidrs: ['10.1.0.0/16', '10.2.0.0/16'],
      hostPorts: [],
    });
  });

  it('a network that is not there is refused, not replaced', () => {
    expect(() => networks.check(vpc('subnet-unknown00'))).toThrow('names subnet-unknown00');
    expect(() => networks.policy(vpc('subnet-unknown00'))).toThrow('names subnet-unknown00');
    expect(() => networks.check({ networkMode: 'VPC' })).toThrow('is required by mode VPC');
    expect(() => networks.check({ ...vpc(subnet), networkMode: 'PUBLIC' })).toThrow('does not go with mode PUBLIC');
  });

  it('text that names no ranges is refused', () => {
    for (const text of ['a', 'subnet-0123456789=', `${subnet}=10.0.0.0`, `${subnet}=10.0.0.0/99`, `=${subnet}`])
      expect(() => subnetMap(text, SETTING)).toThrow('is not of the form');
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          for (const [name] of subnetMap(text, SETTING)) expect(name).toMatch(/^subnet-/);
        } catch (error) {
          expect(String(error)).toContain('is not of the form');
        }
      }),
    );
  });
});
