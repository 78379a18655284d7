import { isIPv4 } from 'node:net';
import { items, property } from '../records/json-path.ts';

export interface CniOptions {
  network: string;
  subnet: string;
  gateway: string;
  /** Directory of host-local's address leases. */
  leases: string;
}

/** What a sandbox's network is after the plugin has run. */
export interface CniAddress {
  ip: string;
  /** The host's end of the pair. */
  hostInterface: string;
}

/** Network configuration for the CNI plugins `ptp` (a pair of interfaces) and `host-local` (an address), CNI 0.4.0. */
export function cniConfig({ network, subnet, gateway, leases }: CniOptions): string {
  return JSON.stringify({
    cniVersion: '0.4.0',
    name: network,
    type: 'ptp',
    // Translation and filtering are in our own table.
    ipMasq: false,
    ipam: { type: 'host-local', dataDir: leases, ranges: [[{ subnet, gateway }]], routes: [{ dst: '0.0.0.0/0' }] },
  });
}

/** Reads the result of ADD. Throws a TypeError when it is not one. */
export function parseCniResult(text: string): CniAddress {
  const result: unknown = JSON.parse(text);
  const ips = items(result, 'ips');
  const interfaces = items(result, 'interfaces');
  const address = property(ips[0], 'address');
  const host = interfaces.find((item) => !property(item, 'sandbox'));
  const hostInterface = property(host, 'name');
  const ip = typeof address === 'string' ? address.split('/')[0] : undefined;
  if (!ip || !isIPv4(ip) || typeof hostInterface !== 'string' || !/^[\w.-]{1,15}$/.test(hostInterface)) {
    throw new TypeError(`unexpected result of the network plugin: ${text.slice(0, 200)}`);
  }
  return { ip, hostInterface };
}
