export { configuredMasterKeys, openMasterKeyFile } from './master-keys.ts';
export { Secret } from './secret.ts';
export { createSecrets, type Secrets } from './secrets.ts';
export { secretMigrations } from './tables.ts';
