export { MasterKeyError, SecretIntegrityError } from './errors.ts';
export type { MasterKeys } from './master-keys.ts';
export { configuredMasterKeys, openMasterKeyFile } from './master-keys.ts';
export { Secret } from './secret.ts';
export type { SecretName, Secrets } from './secrets.ts';
export { createSecrets } from './secrets.ts';
export { secretMigrations } from './tables.ts';
