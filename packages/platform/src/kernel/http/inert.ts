/**
 * What an answer with a caller's or an agent's content carries, so that a browser never runs it as a page of this origin: its type is
 * not guessed, and a document stands in a sandbox without scripts, forms or an origin.
 */
export const INERT_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
} as const;

/** Types that no browser makes a document of, nor takes for another type. */
const NO_DOCUMENT = /^(?:application\/(?:json|vnd\.amazon\.eventstream)|text\/event-stream)\s*(?:;|$)/i;

/** Whether a browser could run content of this type: true for every type that is not known to be harmless. */
export function mayRun(contentType: string | undefined): boolean {
  return contentType === undefined || !NO_DOCUMENT.test(contentType);
}
