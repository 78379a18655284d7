import type { Relaxation } from '@agentplatform/contract';
import { cell, table } from './table.ts';

/** The patterns that are accepted beside those of the published model, for `docs/deviations.md`. */
export function relaxationTable(relaxations: readonly Relaxation[]): string {
  const rows = relaxations.map(({ plane, shapes, alsoMatches, reason }) => [
    shapes.map((shape) => `\`${shape}\``).join(', '),
    plane,
    `\`${cell(alsoMatches)}\``,
    cell(reason),
  ]);
  return table(['shape', 'plane', 'also accepted', 'why'], rows);
}
