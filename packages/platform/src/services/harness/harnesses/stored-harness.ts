import type { control } from '@agentplatform/contract';
import { flag, number, object, orAbsent, stored, text, wire, word } from '../../../kernel/stored-shape.ts';
import type { Harness, HarnessDefinition, HarnessEndpoint, HarnessVersion } from './harness.ts';

const TIMES = { createdAt: number, updatedAt: number };

/** How a harness, a version and an endpoint are kept in the table `resources`. */
export const storedHarness = stored<Harness>(
  object({ arn: text, id: text, accountId: text, name: text, latestVersion: number, deleting: flag, ...TIMES }),
);

export const storedVersion = stored<HarnessVersion>(
  object(
    {
      ...{ harnessArn: text, version: number, failureReason: orAbsent(text), ...TIMES },
      status: word<control.HarnessStatus>(),
      definition: wire<HarnessDefinition>(),
    },
    { certificateAuthority: text, memoryArn: text },
  ),
);

export const storedEndpoint = stored<HarnessEndpoint>(
  object({
    ...{ arn: text, harnessArn: text, name: text, description: orAbsent(text) },
    ...{ liveVersion: orAbsent(number), targetVersion: number, failureReason: orAbsent(text), ...TIMES },
    status: word<control.HarnessEndpointStatus>(),
  }),
);
