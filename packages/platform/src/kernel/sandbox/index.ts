export { createSandboxProvider, probeProviders } from './choose-provider.ts';
export { leaseFile } from './lease-file.ts';
export { LiveSandboxes } from './live-sandboxes.ts';
export { ReservedMemory } from './reserved-memory.ts';
export { runCommand } from './run-command.ts';
export * from './sandbox.ts';
