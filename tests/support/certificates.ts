import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** A certificate that vouches for itself, made by OpenSSL. */
export async function selfSigned(...extensions: string[]): Promise<{ key: string; cert: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'private-authority-'));
  try {
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
    const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert];
    const named = ['-subj', '/CN=private', ...extensions.flatMap((one) => ['-addext', one])];
    await promisify(execFile)('openssl', [...made, ...named]);
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  } finally {
    await rm(dir, { recursive: true });
  }
}
