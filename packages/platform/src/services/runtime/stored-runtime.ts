import { flag, list, number, object, oneOf, orAbsent, stored, text, wire, word } from '../../kernel/stored-shape.ts';
import type { ResourceStatus, Runtime, RuntimeDefinition, RuntimeEndpoint, RuntimeVersion } from './runtime.ts';

const TIMES = { createdAt: number, updatedAt: number };
const STATE = { status: word<ResourceStatus>(), failureReason: orAbsent(text) };

/** How a runtime, a version and an endpoint are kept in the table `resources`. */
export const storedRuntime = stored<Runtime>(
  object({ arn: text, id: text, accountId: text, name: text, latestVersion: number, deleting: flag, ...TIMES }),
);

export const storedVersion = stored<RuntimeVersion>(
  object(
    {
      ...{ runtimeArn: text, version: number, imageDigest: orAbsent(text), ...STATE, ...TIMES },
      lifecycle: object({ idleSeconds: number, maxLifetimeSeconds: number }),
      protocol: oneOf('HTTP', 'MCP', 'A2A', 'AGUI'),
      definition: wire<RuntimeDefinition>(),
    },
    { certificateAuthority: text, given: list(text) },
  ),
);

export const storedEndpoint = stored<RuntimeEndpoint>(
  object({
    ...{ arn: text, id: text, runtimeArn: text, name: text, description: orAbsent(text) },
    ...{ liveVersion: orAbsent(number), targetVersion: number, ...STATE, ...TIMES },
  }),
);
