import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { replaceFile } from '../durable-file.ts';
import { orMissing } from '../system-error.ts';
import { type Credential, issue, makeAuthority, subject } from './certificate.ts';

/** What a server needs to speak TLS on some names, and what clients need to believe it. */
export interface LocalAuthority {
  hosts: readonly string[];
  /** The authority alone, for clients that add it to what they trust. */
  caFile: string;
  /** The authority, those of this machine and the usual ones, for clients that trust one file instead of their own. */
  bundleFile: string;
  /** A new certificate for the names, `localhost` and the loopback addresses; valid for a year from `now`, in ms since the epoch. */
  issue(now: number): Credential;
}

const RENEW_MS = 400 * 86_400_000;

/**
 * Opens the authority that is kept in `dir`, or makes it: its key is readable by the owner alone, and it can vouch for `hosts` only. One
 * that would end within a certificate's life, that cannot be read, or that was made for other names is replaced.
 */
export async function openLocalAuthority(
  dir: string,
  hosts: readonly string[],
  now: number,
  roots = usualRoots,
): Promise<LocalAuthority> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await chmod(dir, 0o700);
  const files = { caFile: join(dir, 'ca.pem'), keyFile: join(dir, 'ca-key.pem'), bundleFile: join(dir, 'bundle.pem') };
  const namesFile = join(dir, 'hosts.json');
  const kept = await readKept(files.caFile, files.keyFile, namesFile);
  const names = JSON.stringify(hosts);
  let authority = kept?.names === names ? kept.credential : undefined;
  if (!authority || !usable(authority, now)) {
    authority = makeAuthority(hosts, now);
    await replaceFile(files.keyFile, authority.key);
    await replaceFile(files.caFile, authority.certificate);
    await replaceFile(namesFile, names);
  }
  const trusted = [...roots(), authority.certificate].map((one) => `${one.trim()}\n`);
  await replaceFile(files.bundleFile, [...new Set(trusted)].join(''));
  const { certificate } = authority;
  const key = createPrivateKey(authority.key);
  const name = subject(commonName(certificate));
  return {
    hosts,
    caFile: files.caFile,
    bundleFile: files.bundleFile,
    issue(at) {
      const made = issue({ key, name }, [...hosts, 'localhost', '127.0.0.1', '::1'], at);
      return { ...made, certificate: made.certificate + certificate };
    },
  };
}

/** An operator may have added one to the machine's, such as that of a proxy. */
function usualRoots(): string[] {
  return [...getCACertificates('bundled'), ...getCACertificates('system')];
}

async function readKept(caFile: string, keyFile: string, namesFile: string) {
  const [certificate, key, names] = await Promise.all(
    [caFile, keyFile, namesFile].map((file) => orMissing(readFile(file, 'utf8'))),
  );
  if (certificate === undefined || key === undefined || names === undefined) return undefined;
  return { credential: { certificate, key }, names };
}

function usable({ certificate, key }: Credential, now: number): boolean {
  try {
    const parsed = new X509Certificate(certificate);
    return parsed.checkPrivateKey(createPrivateKey(key)) && Date.parse(parsed.validTo) - now > RENEW_MS;
  } catch {
    return false;
  }
}

function commonName(certificate: string): string {
  return /^CN=(.*)$/m.exec(new X509Certificate(certificate).subject)?.[1] ?? '';
}
