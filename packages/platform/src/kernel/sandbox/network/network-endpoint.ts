import { BlockList, isIPv4 } from 'node:net';
import { CLOSED_RANGES } from './nft-rules.ts';

/** A policy names services elsewhere: the host's own loopback interface is `hostPorts`, and nothing leads to the metadata of a cloud. */
const NEVER = blockList(['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3']);
const CLOSED = blockList(CLOSED_RANGES);

/** Whether an address may be that of a `NetworkEndpoint`. */
export function isEndpointAddress(address: string): boolean {
  return isIPv4(address) && !NEVER.check(address);
}

/** Whether an IPv4 address is closed to sandboxes unless a policy opens it by name. */
export function isClosedAddress(address: string): boolean {
  return CLOSED.check(address);
}

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [base = '', bits] = range.split('/');
    list.addSubnet(base, Number(bits));
  }
  return list;
}
