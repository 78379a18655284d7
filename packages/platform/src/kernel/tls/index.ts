export { openLocalAuthority } from './local-authority.ts';
