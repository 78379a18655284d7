export type { Credential } from './certificate.ts';
export { type LocalAuthority, openLocalAuthority } from './local-authority.ts';
