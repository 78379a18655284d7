export { runCommand } from '../processes/index.ts';
export { createSandboxProvider, probeProviders } from './choose-provider.ts';
export { unescapeMount } from './host/cgroups.ts';
export { LEAST_DISK_BYTES } from './host/disk-bytes.ts';
export { leaseFile } from './host/lease-file.ts';
export { LeftSandboxes } from './left-sandboxes.ts';
export { LiveSandboxes } from './live-sandboxes.ts';
export { NamedNetworks, subnetMap } from './network/named-networks.ts';
export { isClosedAddress, isEndpointAddress } from './network/network-endpoint.ts';
export { OciProvider } from './oci/oci-provider.ts';
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
