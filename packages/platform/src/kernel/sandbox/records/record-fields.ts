import type { NetworkPolicy } from '../sandbox.ts';
import { items, property } from './json-path.ts';

/** Reads a text of a record. Throws a TypeError when it is missing. */
export function text(value: unknown, name: string): string {
  const found = property(value, name);
  if (typeof found !== 'string') throw new TypeError(`${name} is missing`);
  return found;
}

export function texts(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([name, content]) => [name, String(content)]));
}

/** Reads the network policy of a record. A missing field counts as closed. */
export function networkPolicy(value: unknown): NetworkPolicy {
  return {
    egress: property(value, 'egress') === 'restricted' ? 'restricted' : 'none',
    allowCidrs: items(value, 'allowCidrs').map(String),
    hostPorts: items(value, 'hostPorts').map(Number),
    endpoints: items(value, 'endpoints').map((endpoint) => ({
      host: text(endpoint, 'host'),
      addresses: items(endpoint, 'addresses').map(String),
      port: Number(property(endpoint, 'port')),
    })),
    // Records of before 2026-11-23 call it `door`.
    sandboxEndpoint: property(value, 'sandboxEndpoint') === true || property(value, 'door') === true,
  };
}
