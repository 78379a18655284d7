export { createSandboxProvider, probeProviders } from './choose-provider.ts';
export { leaseFile } from './lease-file.ts';
export * from './sandbox.ts';
