import { manifest as administration } from './services/administration/manifest.ts';
import { manifest as audit } from './services/audit/manifest.ts';
import { manifest as bedrockRuntime } from './services/bedrock-runtime/manifest.ts';
import { manifest as browser } from './services/browser/manifest.ts';
import { manifest as codeInterpreter } from './services/code-interpreter/manifest.ts';
import { manifest as containerRegistry } from './services/container-registry/manifest.ts';
import { manifest as functions } from './services/functions/manifest.ts';
import { manifest as gateway } from './services/gateway/manifest.ts';
import { manifest as harness } from './services/harness/manifest.ts';
import { manifest as iam } from './services/iam/manifest.ts';
import { manifest as identity } from './services/identity/manifest.ts';
import { manifest as memory } from './services/memory/manifest.ts';
import { manifest as metering } from './services/metering/manifest.ts';
import { manifest as observability } from './services/observability/manifest.ts';
import { manifest as packages } from './services/packages/manifest.ts';
import { manifest as policy } from './services/policy/manifest.ts';
import { manifest as resourcePolicies } from './services/resource-policies/manifest.ts';
import { manifest as runtime } from './services/runtime/manifest.ts';
import { manifest as s3 } from './services/s3/manifest.ts';
import { manifest as secrets } from './services/secrets/manifest.ts';
import { manifest as tags } from './services/tags/manifest.ts';

/** Every service of the platform, in the order in which they are made and started: each after those that it needs. */
export const services = [
  administration,
  packages,
  audit,
  metering,
  observability,
  iam,
  s3,
  containerRegistry,
  secrets,
  identity,
  resourcePolicies,
  tags,
  runtime,
  codeInterpreter,
  browser,
  memory,
  functions,
  policy,
  gateway,
  harness,
  bedrockRuntime,
] as const;
