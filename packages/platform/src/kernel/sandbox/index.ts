export {
  type ChooseProviderOptions,
  type ChosenProvider,
  createSandboxProvider,
  explainProbes,
  probeProviders,
} from './choose-provider.ts';
export type { OciProviderOptions } from './oci-engine.ts';
export * from './sandbox.ts';
