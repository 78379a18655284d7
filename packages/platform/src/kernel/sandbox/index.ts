export { createSandboxProvider, probeProviders } from './choose-provider.ts';
export * from './sandbox.ts';
