export { LateMounts } from './late-mounts.ts';
export { readMounts } from './mount-table.ts';
export { SessionStorage } from './session-storage.ts';
