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

export type IamChange = { put: IamRecord } | { remove: Pick<IamRecord, 'kind' | 'name'> };

/** Reads a record as it was stored. Throws `TypeError` naming what does not look like one. */
export function parseRecord(kind: string, name: string, data: unknown): IamRecord {
  const has = (...members: string[]): boolean =>
    typeof data === 'object' && data !== null && members.every((member) => Object.hasOwn(data, member));
  // The shapes are this file's own, written by this program; the members say that the row is of the kind it claims.
  if (kind === 'account' && has('accountId', 'sealedTokenKey')) return { kind, name: 'account', data: data as Account };
  if (kind === 'user' && has('userName', 'arn', 'policies')) return { kind, name, data: data as User };
  if (kind === 'role' && has('roleName', 'arn', 'trustPolicy')) return { kind, name, data: data as Role };
  if (kind === 'access-key' && has('accessKeyId', 'sealedSecret')) return { kind, name, data: data as AccessKey };
  throw new TypeError(`the stored ${kind} "${name}" is not of a known shape`);
}
