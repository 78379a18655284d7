import type { RandomBytes } from './ports.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** `AKIA…`, `ASIA…`, `AIDA…`, `AROA…`: four letters that say what it is, and 80 random bits. */
export function newId(prefix: 'AKIA' | 'ASIA' | 'AIDA' | 'AROA', random: RandomBytes): string {
  return prefix + Array.from(random(16), (byte) => BASE32.charAt(byte & 31)).join('');
}

/** 240 random bits in 40 characters, the length that clients know. */
export function newSecret(random: RandomBytes): string {
  return random(30).toString('base64');
}

/** 12 digits, the first not 0. */
export function newAccountId(random: RandomBytes): string {
  const number = random(8).readBigUInt64BE() % 900_000_000_000n;
  return (number + 100_000_000_000n).toString();
}

/** The role that agents run as when nothing else is said. */
export const DEFAULT_ROLE = 'default';

export const rootArn = (accountId: string): string => `arn:aws:iam::${accountId}:root`;
export const userArn = (accountId: string, name: string): string => `arn:aws:iam::${accountId}:user/${name}`;
export const roleArn = (accountId: string, name: string): string => `arn:aws:iam::${accountId}:role/${name}`;
export const roleSessionArn = (accountId: string, role: string, session: string): string =>
  `arn:aws:sts::${accountId}:assumed-role/${role}/${session}`;
