import { X509Certificate } from 'node:crypto';
import { type control, errors } from '@agentplatform/contract';
import type { Clock } from '../clock.ts';
import type { objectReader } from '../objects/index.ts';
import type { Secret } from '../secrets/index.ts';
import type { Caller, RequestContext } from '../service.ts';

export interface CertificateAuthorityDeps {
  readObject: ReturnType<typeof objectReader>;
  /** The whole of a secret by its ARN, as the caller. */
  readSecret(arn: string, caller: Caller): Promise<Secret>;
  clock: Pick<Clock, 'now'>;
}

/** A chain of certificates is some kilobytes. */
const MAX_BYTES = 65_536;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

type Reader = Pick<RequestContext, 'accountId' | 'require' | 'signal'>;

/**
 * The private authority that is named for an identity provider, as PEM; undefined when none is. Who names it must be allowed to
 * read it. `field` is what the wire calls the list. Throws a ValidationException for what is no certificate of an authority.
 */
export async function certificateAuthority(
  [named]: readonly control.CertificateConfiguration[] = [],
  field: string,
  ctx: Reader,
  deps: CertificateAuthorityDeps,
): Promise<string | undefined> {
  if (!named) return undefined;
  const at = named.s3 ? `${field}[0].s3.uri` : `${field}[0].secretsManager.secretArn`;
  const kind = named.s3 ? 'an object' : 'a secret';
  const problem = (what: string): Error => errors.invalidField(at, `names ${kind} that ${what}`);
  const text = named.s3
    ? await textOf(named.s3, ctx, deps, problem)
    : (await deps.readSecret(named.secretsManager.secretArn, ctx)).reveal();
  const [pem, ...more] = certificatesIn(text);
  if (pem === undefined) throw problem('holds no certificate in PEM');
  for (const one of [pem, ...more]) check(one, deps.clock.now(), problem);
  return [pem, ...more].join('\n');
}

async function textOf(
  { uri, bucketOwnerAccountId }: control.S3CertificateConfiguration,
  ctx: Reader,
  { readObject }: CertificateAuthorityDeps,
  problem: (what: string) => Error,
): Promise<string> {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]+)\/(.+)$/.exec(uri) ?? [];
  await ctx.require('s3:GetObject', `arn:aws:s3:::${bucket}/${key}`);
  const foreign = bucketOwnerAccountId !== undefined && bucketOwnerAccountId !== ctx.accountId;
  const object = foreign ? undefined : await readObject(ctx.accountId, { bucket, key }, ctx.signal);
  if (!object) throw problem('is not there');
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of object.body) {
    bytes += part.length;
    if (bytes > MAX_BYTES) throw problem(`is larger than ${MAX_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('latin1');
}

function certificatesIn(text: string): string[] {
  return text.match(PEM) ?? [];
}

function check(pem: string, now: number, problem: (what: string) => Error): void {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    throw problem('holds something that is not a certificate');
  }
  if (!certificate.ca)
    throw problem('holds a certificate that may not vouch for others: it has to be that of an authority');
  if (certificate.validToDate.getTime() <= now) throw problem('holds a certificate that is no longer valid');
}
