export { runCommand } from '../processes/index.ts';
export { unescapeMount } from './cgroups.ts';
export { createSandboxProvider, probeProviders } from './choose-provider.ts';
export { LEAST_DISK_BYTES } from './disk-bytes.ts';
export { leaseFile } from './lease-file.ts';
export { LeftSandboxes } from './left-sandboxes.ts';
export { LiveSandboxes } from './live-sandboxes.ts';
export { isClosedAddress, isEndpointAddress } from './network-endpoint.ts';
export { OciProvider } from './oci-provider.ts';
export { ReservedMemory } from './reserved-memory.ts';
export * from './sandbox.ts';
export {
  type ExecHandle,
  type LogLine,
  NEVER_RAN,
  type NetworkPolicy,
  type ProbeReport,
  SANDBOX_ENDPOINT_ADDRESS,
  type Sandbox,
  SandboxError,
  type SandboxExit,
  type SandboxImage,
  type SandboxLimits,
  type SandboxProvider,
  type SandboxSpec,
  type Usage,
  type Volume,
} from './sandbox.ts';
