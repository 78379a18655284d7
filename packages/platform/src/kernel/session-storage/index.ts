export { SessionStorage } from './session-storage.ts';
