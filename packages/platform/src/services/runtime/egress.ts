import { isIPv4 } from 'node:net';
import { isClosedAddress, isEndpointAddress, type NetworkPolicy } from '../../kernel/sandbox/index.ts';
import { StartFailure } from '../../kernel/sessions/index.ts';

/** One service that a runtime's sandboxes may reach over TCP. */
export interface Endpoint {
  /** `LOOPBACK`, an IPv4 address or a name, in small letters. */
  host: string;
  port: number;
}

export interface EgressDeps {
  /** All addresses of a name. Rejects when it has none. */
  resolve(host: string): Promise<readonly { address: string }[]>;
  /** Ports of the host's loopback interface by which the platform itself is reached. */
  ownPorts(): readonly number[];
}

/** The host's own loopback interface; inside a sandbox `localhost` is the sandbox. */
const LOOPBACK = 'localhost';
/** What it is called inside. */
const LOOPBACK_NAMES = new Set([LOOPBACK, '127.0.0.1', 'host.docker.internal', 'platform.internal']);

/** A name whose last label is no number: `127.1` and `0x7f.1` are addresses to some. */
const NAME = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** The services in a list such as `localhost:11434,10.0.0.7:8000`. Parts that are not HOST:PORT are left out. */
export function endpointsOf(list: string): Endpoint[] {
  return list
    .split(',')
    .map((text) => parse(text.trim()))
    .filter((endpoint) => endpoint !== undefined);
}

/** Why a list cannot be one; undefined when it can. */
export function egressProblem(list: string): string | undefined {
  const texts = list.split(',').map((text) => text.trim());
  if (texts.length > MOST) return `must name at most ${MOST} services`;
  const wrong = texts.find((text) => !parse(text));
  if (wrong === undefined) return undefined;
  return `must be services as HOST:PORT, separated by commas, and ${JSON.stringify(wrong.slice(0, 80))} is none; a host is a name, an IPv4 address or localhost`;
}

/** Most services that one runtime may open. */
const MOST = 16;

function parse(text: string): Endpoint | undefined {
  const [, name = '', digits = ''] = /^([^:\s]+):([1-9]\d{0,4})$/.exec(text) ?? [];
  const host = name.toLowerCase().replace(/\.$/, '');
  const port = Number(digits);
  if (port < 1 || port > 65_535 || !(isIPv4(host) || NAME.test(host))) return undefined;
  return { host: LOOPBACK_NAMES.has(host) ? LOOPBACK : host, port };
}

/** What policies name: `egress/HOST:PORT`, the host's own loopback interface as `localhost`. */
export function egressArn(accountId: string, { host, port }: Endpoint): string {
  return `arn:aws:agentplatform::${accountId}:egress/${host}:${port}`;
}

/**
 * Opens the services `wanted` in `policy`. It resolves their names now, and the sandbox keeps these addresses until its end. It skips services that are
 * open already. Rejects with `StartFailure` if a name has no address that may be opened.
 */
export async function openEgress(
  policy: NetworkPolicy,
  wanted: readonly Endpoint[],
  deps: EgressDeps,
): Promise<NetworkPolicy> {
  const hostPorts = [...policy.hostPorts];
  const endpoints = [...(policy.endpoints ?? [])];
  for (const { host, port } of wanted) {
    if (host === LOOPBACK) {
      if (deps.ownPorts().includes(port))
        throw new StartFailure(
          `Port ${port} of this machine belongs to the platform. No agent may reach it by --allow-egress.`,
        );
      hostPorts.push(port);
      continue;
    }
    const addresses = await addressesOf(host, deps);
    const open = policy.egress === 'restricted' && !addresses.some(isClosedAddress);
    if (!open) endpoints.push({ host, addresses, port });
  }
  return { ...policy, hostPorts, endpoints };
}

async function addressesOf(host: string, { resolve }: EgressDeps): Promise<string[]> {
  const failure = (why: string, cause?: unknown): StartFailure =>
    new StartFailure(`${host}, which the agent may reach by --allow-egress, ${why}.`, { cause });
  const found = isIPv4(host)
    ? [{ address: host }]
    : await resolve(host).catch((error: unknown) => {
        throw failure('has no address now', error);
      });
  const addresses = found.map(({ address }) => address).filter(isEndpointAddress);
  if (addresses.length > 0) return [...new Set(addresses)].slice(0, MOST);
  throw failure('has only IPv4 addresses that are never opened: loopback, link-local or multicast');
}
