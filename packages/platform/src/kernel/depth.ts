import type { DocumentValue } from '@agentplatform/contract';

/** Whether lists and objects in `value` are nested deeper than that; never runs out of stack. What is shared is looked at once for each way to it. */
export function isDeeperThan(value: DocumentValue | undefined, levels: number): boolean {
  let level: (DocumentValue | undefined)[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    const next: (DocumentValue | undefined)[] = [];
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue;
      for (const inner of Array.isArray(one) ? one : Object.values(one))
        if (typeof inner === 'object' && inner !== null) next.push(inner);
    }
    level = next;
  }
  return false;
}
