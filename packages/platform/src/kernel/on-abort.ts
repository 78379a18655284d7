/** Calls `run` when the signal aborts, at once where it has; the returned function calls that off. */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) run();
  else signal.addEventListener('abort', run, { once: true });
  return () => signal.removeEventListener('abort', run);
}
