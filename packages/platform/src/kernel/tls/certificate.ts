import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { bits, explicit, implicit, integer, octets, oid, sequence, set, time, truth, utf8 } from './der.ts';

/** A certificate and its private key, both as PEM. */
export interface Credential {
  certificate: string;
  key: string;
}

const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  organization: '2.5.4.10',
  commonName: '2.5.4.3',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const;

const DAY_MS = 86_400_000;
/** Clocks of clients may be behind. */
const EARLIER_MS = DAY_MS;
const CA_DAYS = 3650;
/** What clients with limits take at most. */
const SERVER_DAYS = 397;

/**
 * An authority that can vouch for those DNS names and for the loopback addresses and for nothing else, whoever gets hold of its key:
 * clients enforce that by its name constraints (RFC 5280, 4.2.1.10).
 */
export function makeAuthority(hosts: readonly string[], now: number): Credential {
  const keys = newKeys();
  const name = subject(`agentplatform local CA ${randomBytes(4).toString('hex')}`);
  const permitted = [
    ...[...hosts, 'localhost'].map((host) => sequence(implicit(2, Buffer.from(host)))),
    sequence(implicit(7, Buffer.from([127, 0, 0, 0, 255, 0, 0, 0]))),
    sequence(implicit(7, Buffer.concat([addressBytes('::1'), Buffer.alloc(16, 255)]))),
  ];
  const extensions = [
    extension(OID.basicConstraints, sequence(truth(), integer(Buffer.from([0]))), true),
    // keyCertSign and cRLSign.
    extension(OID.keyUsage, bits(Buffer.from([0b0000_0110]), 1), true),
    extension(OID.nameConstraints, sequence(explicit(0, Buffer.concat(permitted))), true),
    extension(OID.subjectKeyId, octets(keyId(keys.publicKey))),
  ];
  const content = { issuer: name, name, key: keys.publicKey, now, days: CA_DAYS, extensions };
  return { certificate: signed(content, keys.privateKey), key: pem(keys.privateKey) };
}

/** A certificate of a server with those names and addresses, vouched for by the authority. */
export function issue(authority: { key: KeyObject; name: Buffer }, names: readonly string[], now: number): Credential {
  const keys = newKeys();
  const alternatives = names.map((name) =>
    isIP(name) ? implicit(7, addressBytes(name)) : implicit(2, Buffer.from(name)),
  );
  const extensions = [
    extension(OID.basicConstraints, sequence(), true),
    // digitalSignature.
    extension(OID.keyUsage, bits(Buffer.from([0b1000_0000]), 7), true),
    extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuth))),
    extension(OID.alternativeNames, sequence(...alternatives)),
    extension(OID.subjectKeyId, octets(keyId(keys.publicKey))),
    extension(OID.authorityKeyId, sequence(implicit(0, keyId(createPublicKey(authority.key))))),
  ];
  const name = subject('agentplatform');
  const content = { issuer: authority.name, name, key: keys.publicKey, now, days: SERVER_DAYS, extensions };
  return { certificate: signed(content, authority.key), key: pem(keys.privateKey) };
}

/** The subject of a certificate that `makeAuthority` made, as an issuer is named. */
export function subject(commonName: string): Buffer {
  const part = (type: string, text: string): Buffer => set(sequence(oid(type), utf8(text)));
  return sequence(part(OID.organization, 'agentplatform'), part(OID.commonName, commonName));
}

interface Content {
  issuer: Buffer;
  name: Buffer;
  key: KeyObject;
  now: number;
  days: number;
  extensions: Buffer[];
}

function signed({ issuer, name, key, now, days, extensions }: Content, signer: KeyObject): string {
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const from = new Date(now - EARLIER_MS);
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x40]), randomBytes(15)])),
    algorithm,
    issuer,
    sequence(time(from), time(new Date(from.getTime() + days * DAY_MS))),
    name,
    key.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...extensions)),
  );
  const certificate = sequence(body, algorithm, bits(sign('sha256', body, signer)));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [truth()] : []), octets(value));
}

function newKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 20);
}

function addressBytes(address: string): Buffer {
  return Buffer.from(ipaddr.parse(address).toByteArray());
}
