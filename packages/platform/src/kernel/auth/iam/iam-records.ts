import { flag, number, object, orAbsent, record, type Shape, StoredShapeError, text } from '../../stored-shape.ts';
/** What the access management keeps. Policies are stored as the text that was given, so that it comes back unchanged. */
export type IamRecord =
  | { kind: 'account'; name: 'account'; data: Account }
  | { kind: 'user'; name: string; data: User }
  | { kind: 'role'; name: string; data: Role }
  | { kind: 'access-key'; name: string; data: AccessKey };

export interface Account {
  /** 12 digits. */
  accountId: string;
  /** Sealed 32 bytes (base64) from which session tokens are made. */
  sealedTokenKey: string;
}

export interface User {
  userName: string;
  userId: string;
  arn: string;
  /** Milliseconds since the epoch, as every time here. */
  createdAt: number;
  tags: Record<string, string>;
  policies: Record<string, string>;
}

export interface Role {
  roleName: string;
  roleId: string;
  arn: string;
  createdAt: number;
  description: string;
  tags: Record<string, string>;
  policies: Record<string, string>;
  trustPolicy: string;
  maxSessionSeconds: number;
}

export interface AccessKey {
  accessKeyId: string;
  /** `undefined` is the account's root. */
  userName: string | undefined;
  active: boolean;
  createdAt: number;
  sealedSecret: string;
}

const ACCOUNT: Shape<Account> = object({ accountId: text, sealedTokenKey: text });
const NAMED = { arn: text, createdAt: number, tags: record(text), policies: record(text) };
const USER: Shape<User> = object({ ...NAMED, userName: text, userId: text });
const ROLE: Shape<Role> = object({
  ...{ ...NAMED, roleName: text, roleId: text },
  ...{ description: text, trustPolicy: text, maxSessionSeconds: number },
});
const ACCESS_KEY: Shape<AccessKey> = object({
  ...{ accessKeyId: text, userName: orAbsent(text), active: flag, createdAt: number, sealedSecret: text },
});

export type IamChange = { put: IamRecord } | { remove: Pick<IamRecord, 'kind' | 'name'> };

/** Reads a record as it was stored. Throws `StoredShapeError`. */
export function parseRecord(kind: string, name: string, data: unknown): IamRecord {
  if (kind === 'account') return { kind, name: 'account', data: ACCOUNT(data, kind) };
  if (kind === 'user') return { kind, name, data: USER(data, kind) };
  if (kind === 'role') return { kind, name, data: ROLE(data, kind) };
  if (kind === 'access-key') return { kind, name, data: ACCESS_KEY(data, kind) };
  throw new StoredShapeError(kind, 'a record of the access management');
}
