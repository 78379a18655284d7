/** What namespaces are compared by, also by policies: `/actors/jane/` and `/actors/jane` are one place. */
export function namespaceKey(namespace: string): string {
  let end = namespace.length;
  while (namespace.charAt(end - 1) === '/') end -= 1;
  return namespace.slice(0, end);
}
