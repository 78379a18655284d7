import { trimEnd } from './trim-end.ts';

/** What namespaces are compared by, also by policies: `/actors/jane/` and `/actors/jane` are one place. */
export function namespaceKey(namespace: string): string {
  return trimEnd(namespace, '/');
}
