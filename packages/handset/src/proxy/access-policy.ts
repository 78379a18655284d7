import { isIP } from 'node:net';
import { ProblemError } from '../problem.ts';
import { parseXml } from '../project/xml.ts';

/** Says which addresses outside the application its page may reach, as the `access` elements of config.xml allow. */
export type AccessPolicy = (url: string) => boolean;

interface Rule {
  readonly any: boolean;
  readonly protocol: string;
  readonly hostname: string;
  readonly port: string;
  readonly subdomains: boolean;
}

/** Build the policy from the text of config.xml; without an `access` element nothing outside may be reached. */
export function createAccessPolicy(config: string): AccessPolicy {
  const rules: Rule[] = [];
  let children: ReturnType<typeof parseXml>['children'] = [];
  try {
    children = parseXml(config, 'app/assets/config.xml').children;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
  }
  for (const { name, attributes } of children) {
    if (name !== 'access') continue;
    const origin = attributes.get('origin') ?? '';
    const url = parse(origin);
    if (origin === '*') rules.push({ any: true, protocol: '', hostname: '', port: '', subdomains: false });
    else if (url) {
      const { protocol, hostname, port } = url;
      rules.push({ any: false, protocol, hostname, port, subdomains: attributes.get('subdomains') === 'true' });
    }
  }
  return (address) => {
    const url = parse(address);
    return url !== undefined && rules.some((rule) => allows(rule, url));
  };
}

function allows(rule: Rule, { protocol, hostname, port }: URL): boolean {
  // "Anywhere" means the public network: a page must not be a way into the machine or the network of the proxy.
  if (rule.any) return /^(https?|wss?):$/.test(protocol) && !isInternalName(hostname);
  const sameHost = hostname === rule.hostname || (rule.subdomains && hostname.endsWith(`.${rule.hostname}`));
  return protocol.replace('ws', 'http') === rule.protocol && port === rule.port && sameHost;
}

/** Any numeric address and any name without a dot counts as internal; public services have names. */
export function isInternalName(hostname: string): boolean {
  // The dot that ends a full name changes nothing: `localhost.` is this machine.
  const bare = hostname.replace(/^\[|\]$|\.$/g, '');
  return isIP(bare) !== 0 || !bare.includes('.') || /\.(localhost|local|internal|lan|home|arpa)$/.test(bare);
}

function parse(address: string): URL | undefined {
  return URL.canParse(address) ? new URL(address) : undefined;
}
