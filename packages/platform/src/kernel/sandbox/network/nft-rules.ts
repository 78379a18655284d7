import { type NetworkPolicy, SANDBOX_ENDPOINT_ADDRESS } from '../sandbox.ts';

export interface Nameserver {
  address: string;
  port: number;
}

export interface FirewallOptions {
  table: string;
  subnet: string;
  gateway: string;
  /** The resolver for DNS queries to port 53 of the gateway; undefined when the host has no IPv4 resolver. */
  nameserver: Nameserver | undefined;
  /** Port of 127.0.0.1 behind the sandbox endpoint; undefined when there is no endpoint. */
  sandboxEndpoint?: number | undefined;
}

/** Not the public internet (IANA special-purpose registry): closed unless a policy opens a range by name. */
export const CLOSED_RANGES = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];

/** Open connections of one sandbox; past it new ones are refused, so that none fills the host's connection table. */
const MAX_CONNECTIONS = 2048;

/**
 * The whole table as one transaction, which can be run again: rules are replaced, the sets of known interfaces stay. What is not
 * allowed by name is refused; a sandbox whose interface is not in the sets has no network at all.
 */
export function baseRules({ table, subnet, gateway, nameserver, sandboxEndpoint }: FirewallOptions): string {
  const t = `inet ${table}`;
  const refuse = 'reject with icmpx type admin-prohibited';
  const flood = `ct state new add @flows { ip saddr ct count over ${MAX_CONNECTIONS} } ${refuse}`;
  const chains: Record<string, { hook: string; rules: string[] }> = {
    arrive: {
      hook: 'type filter hook prerouting priority -300',
      rules: [
        `iifname != @members iifname != "lo" ip saddr ${subnet} drop`,
        'iifname != @members accept',
        'meta nfproto ipv6 drop',
        // Before any translation: nobody inside may address the host's loopback directly.
        'ip daddr 127.0.0.0/8 drop',
        `ip saddr != ${subnet} drop`,
      ],
    },
    translate: {
      hook: 'type nat hook prerouting priority -100',
      rules: [
        ...(nameserver
          ? [
              `iifname @restricted ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 dnat ip to ${nameserver.address}:${nameserver.port}`,
            ]
          : []),
        `ip daddr ${gateway} iifname . tcp dport @hostports dnat ip to 127.0.0.1`,
        ...(sandboxEndpoint === undefined
          ? []
          : [
              `iifname @doors ip daddr ${SANDBOX_ENDPOINT_ADDRESS} tcp dport 80 dnat ip to 127.0.0.1:${sandboxEndpoint}`,
            ]),
      ],
    },
    inward: {
      hook: 'type filter hook input priority -10',
      rules: [
        'iifname != @members accept',
        'ct state established,related accept',
        flood,
        'ct status dnat ip daddr 127.0.0.1 iifname . tcp dport @hostports accept',
        ...(sandboxEndpoint === undefined
          ? []
          : [`ct status dnat ip daddr 127.0.0.1 iifname @doors tcp dport ${sandboxEndpoint} accept`]),
        ...resolver(nameserver),
        'iifname . ip daddr @allowed accept',
        'iifname . ip daddr . tcp dport @endpoints accept',
        refuse,
      ],
    },
    through: {
      hook: 'type filter hook forward priority -10',
      rules: [
        'oifname @members ct state established,related accept',
        // Neither another sandbox nor the world dials in; the host itself does not pass here.
        `oifname @members ${refuse}`,
        'iifname != @members accept',
        'ct state established,related accept',
        flood,
        ...resolver(nameserver),
        'iifname . ip daddr @allowed accept',
        'iifname . ip daddr . tcp dport @endpoints accept',
        `ip daddr @closed ${refuse}`,
        'iifname @restricted accept',
        refuse,
      ],
    },
    leave: {
      hook: 'type nat hook postrouting priority 100',
      rules: [`ip saddr ${subnet} oifname != @members masquerade`],
    },
  };
  // `doors` holds who may reach the sandbox endpoint. It keeps that name: sandboxes that outlived an update of the platform are in it.
  const sets = [
    `add set ${t} members { type ifname; }`,
    `add set ${t} restricted { type ifname; }`,
    `add set ${t} hostports { type ifname . inet_service; }`,
    `add set ${t} doors { type ifname; }`,
    `add set ${t} allowed { type ifname . ipv4_addr; flags interval; }`,
    `add set ${t} endpoints { type ifname . ipv4_addr . inet_service; }`,
    `add set ${t} closed { type ipv4_addr; flags interval; elements = { ${CLOSED_RANGES.join(', ')} }; }`,
    `add set ${t} flows { type ipv4_addr; flags dynamic; size 65536; }`,
  ];
  const lines = [`add table ${t}`, ...sets];
  for (const [name, chain] of Object.entries(chains)) {
    lines.push(`add chain ${t} ${name} { ${chain.hook}; policy accept; }`, `flush chain ${t} ${name}`);
    for (const rule of chain.rules) lines.push(`add rule ${t} ${name} ${rule}`);
  }
  return `${lines.join('\n')}\n`;
}

function resolver(nameserver: Nameserver | undefined): string[] {
  if (!nameserver) return [];
  const { address, port } = nameserver;
  return [`ct status dnat iifname @restricted ip daddr ${address} meta l4proto { tcp, udp } th dport ${port} accept`];
}

/** Makes an interface known; from here on its traffic is judged, and nothing is allowed. */
export function memberRules(table: string, ifname: string): string {
  return `add element inet ${table} members { "${ifname}" }\n`;
}

/** Opens for one interface what its policy names. */
export function policyRules(table: string, ifname: string, policy: NetworkPolicy): string {
  return elements(ifname, policy)
    .map(([set, element]) => `add element inet ${table} ${set} { ${element} }\n`)
    .join('');
}

/** Forgets an interface. Each element is added first, since deleting a missing one would fail the transaction. */
export function forgetRules(table: string, ifname: string, policy: NetworkPolicy | undefined): string {
  const all: [string, string][] = [['members', `"${ifname}"`], ...(policy ? elements(ifname, policy) : [])];
  return all
    .map(
      ([set, element]) =>
        `add element inet ${table} ${set} { ${element} }\ndelete element inet ${table} ${set} { ${element} }\n`,
    )
    .join('');
}

function elements(ifname: string, policy: NetworkPolicy): [set: string, element: string][] {
  const name = `"${ifname}"`;
  return [
    ...(policy.egress === 'restricted' ? [['restricted', name] satisfies [string, string]] : []),
    ...(policy.sandboxEndpoint ? [['doors', name] satisfies [string, string]] : []),
    ...policy.hostPorts.map((port): [string, string] => ['hostports', `${name} . ${port}`]),
    ...(policy.endpoints ?? []).flatMap(({ addresses, port }) =>
      addresses.map((address): [string, string] => ['endpoints', `${name} . ${address} . ${port}`]),
    ),
    ...policy.allowCidrs.map((cidr): [string, string] => ['allowed', `${name} . ${cidr}`]),
  ];
}
