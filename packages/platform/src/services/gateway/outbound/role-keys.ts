import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { SigningCredentials } from '../../../kernel/auth/index.ts';
import { ToolError } from '../tool-error.ts';

/** The access keys that a role has at services other than this platform. */
export interface RoleKeys extends SigningCredentials {
  /** Hosts that get requests signed with it: `host`, `host:port`, or `*.domain`. */
  hosts: readonly string[];
}

/**
 * Keys that the operator gives to roles, from a file like the credentials files of AWS: a section for each ARN of a role (two roles may end alike), with
 * `hosts` beside the usual three. Read at each use, so that keys can be changed while the platform runs. Throws ToolError, which does not tell the path,
 * when the file cannot be read or the section lacks something.
 */
export async function readRoleKeys(path: string | undefined, roleArn: string): Promise<RoleKeys | undefined> {
  if (path === undefined) return undefined;
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ToolError('The platform cannot read the file of the setting gateway.roleCredentials.', { cause });
  });
  const section = sectionsOf(text).get(roleArn);
  if (!section) return undefined;
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey, hosts } = Object.fromEntries(section);
  const { aws_session_token: sessionToken } = Object.fromEntries(section);
  if (accessKeyId === undefined || secretAccessKey === undefined || hosts === undefined)
    throw new ToolError(
      `In the file of the setting gateway.roleCredentials, the section ${roleArn} needs aws_access_key_id, aws_secret_access_key and hosts.`,
    );
  return { accessKeyId, secretAccessKey, sessionToken, hosts: hosts.split(',').map((host) => host.trim()) };
}

/** Whether requests to that URL are signed with these keys. In the clear only to this machine: who reads one can send it again. */
export function coversHost({ hosts }: Pick<RoleKeys, 'hosts'>, { protocol, host, hostname }: URL): boolean {
  const address = hostname.replace(/^\[|\]$/g, '');
  const here = hostname === 'localhost' || (isIP(address) !== 0 && (address.startsWith('127.') || address === '::1'));
  if (protocol !== 'https:' && !here) return false;
  return hosts.some((one) =>
    one.startsWith('*.') ? host.endsWith(one.slice(1)) && host.length >= one.length : one === host,
  );
}

function sectionsOf(text: string): Map<string, Map<string, string>> {
  const sections = new Map<string, Map<string, string>>();
  let section: Map<string, string> | undefined;
  for (const line of text.split('\n').map((one) => one.trim())) {
    const at = line.indexOf('=');
    if (line.startsWith('[') && line.endsWith(']')) {
      const name = line.slice(1, -1).trim();
      section = sections.get(name) ?? new Map();
      sections.set(name, section);
    } else if (at > 0 && !line.startsWith('#') && !line.startsWith(';'))
      section?.set(line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim());
  }
  return sections;
}
