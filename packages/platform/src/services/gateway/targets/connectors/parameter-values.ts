import type { control } from '@agentplatform/contract';
import type { JsonObject } from '../../tools/index.ts';

/** What a target fixes of a tool of a connector, by the names of its settings and parameters. */
export function valuesOf(configuration: control.ConnectorConfiguration | undefined): JsonObject {
  const values = configuration?.parameterValues;
  return typeof values === 'object' && values !== null && !Array.isArray(values) ? values : {};
}
