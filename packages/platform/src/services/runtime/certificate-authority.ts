import { X509Certificate } from 'node:crypto';
import { type control, errors } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { ReadObject } from './artifact.ts';
import type { RuntimeDefinition } from './runtime.ts';

export interface CertificateAuthorityDeps {
  readObject: ReadObject;
  clock: Pick<Clock, 'now'>;
}

/** A chain of certificates is some kilobytes. */
const MAX_BYTES = 65_536;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const FIELD = 'authorizerConfiguration.customJWTAuthorizer.certificateConfigurations[0]';

/**
 * The private authority that a definition names for its identity provider, as PEM; undefined when it names none. Who names it must be allowed to
 * read it. Throws a ValidationException for what is no certificate of an authority.
 */
export async function certificateAuthority(
  definition: RuntimeDefinition,
  ctx: Pick<RequestContext, 'accountId' | 'require' | 'signal'>,
  deps: CertificateAuthorityDeps,
): Promise<string | undefined> {
  const [named] = definition.authorizerConfiguration?.customJWTAuthorizer?.certificateConfigurations ?? [];
  if (!named) return undefined;
  if (!named.s3)
    throw errors.invalidField(`${FIELD}.secretsManager`, 'is not served: there is no Secrets Manager here', {
      remedy: 'Put the certificate, which is no secret, into a bucket and name it in s3.uri.',
    });
  const [pem, ...more] = certificatesIn(await textOf(named.s3, ctx, deps));
  if (pem === undefined) throw problem('holds no certificate in PEM');
  for (const one of [pem, ...more]) check(one, deps.clock.now());
  return [pem, ...more].join('\n');
}

async function textOf(
  { uri, bucketOwnerAccountId }: control.S3CertificateConfiguration,
  ctx: Pick<RequestContext, 'accountId' | 'require' | 'signal'>,
  { readObject }: CertificateAuthorityDeps,
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

function check(pem: string, now: number): void {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    throw problem('holds something that is no certificate');
  }
  if (!certificate.ca)
    throw problem('holds a certificate that may not vouch for others: it has to be that of an authority');
  if (certificate.validToDate.getTime() <= now) throw problem('holds a certificate that is no longer valid');
}

function problem(what: string): Error {
  return errors.invalidField(`${FIELD}.s3.uri`, `names an object that ${what}`);
}
