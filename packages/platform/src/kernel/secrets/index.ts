export { KEY_BYTES, open, seal } from './envelope.ts';
export { SecretIntegrityError } from './errors.ts';
export { configuredMasterKeys, type MasterKeys, openMasterKeyFile } from './master-keys.ts';
export { platformKey } from './platform-key.ts';
export { createSealer } from './sealer.ts';
export { Secret } from './secret.ts';
export { createSecrets, type Secrets } from './secrets.ts';
export { secretMigrations } from './tables.ts';
