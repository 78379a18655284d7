export { createSandboxProvider, probeProviders } from './choose-provider.ts';
export { LEAST_DISK_BYTES } from './disk-bytes.ts';
export { leaseFile } from './lease-file.ts';
export { LeftSandboxes } from './left-sandboxes.ts';
export { LiveSandboxes } from './live-sandboxes.ts';
export { isClosedAddress, isEndpointAddress } from './network-endpoint.ts';
export { ReservedMemory } from './reserved-memory.ts';
export { runCommand } from '../processes/run-command.ts';
export * from './sandbox.ts';
