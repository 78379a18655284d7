import { type OperationName, operations } from '@agentplatform/contract';
import { loadServices } from './open-services.ts';
import { services } from './services.ts';

/**
 * Operations of the contract that no service serves, by what their modules declare: each answers 501 NotImplementedException with its name. How
 * many there are is the distance left.
 */
export async function notImplemented(
  manifests: Parameters<typeof loadServices>[0] = services,
): Promise<OperationName[]> {
  const loaded = await loadServices(manifests);
  const served = new Set(loaded.flatMap(({ module }): readonly OperationName[] => module.operations ?? []));
  return Object.values(operations).flatMap(({ name }) => (served.has(name) ? [] : [name]));
}
