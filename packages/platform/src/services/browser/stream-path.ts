/** Which session's stream a path names. */
export interface StreamPath {
  browserId: string;
  sessionId: string;
}

export type StreamKind = 'automation' | 'live-view';

const PATH = /^\/browser-streams\/([a-zA-Z0-9._-]{1,100})\/sessions\/([0-9a-zA-Z]{1,40})\/(automation|live-view)$/;

/** Reads `/browser-streams/{browserId}/sessions/{sessionId}/{kind}`; undefined for any other path. */
export function streamPath(url: string, kind: StreamKind): StreamPath | undefined {
  const [, browserId, sessionId, found] = PATH.exec(url.split('?', 1)[0] ?? '') ?? [];
  return browserId !== undefined && sessionId !== undefined && found === kind ? { browserId, sessionId } : undefined;
}

/** Where that stream is, as its caller reached the platform. */
export function streamAddress(origin: string, { browserId, sessionId }: StreamPath, kind: StreamKind): string {
  const base = kind === 'automation' ? origin.replace(/^http/, 'ws') : origin;
  return `${base}/browser-streams/${browserId}/sessions/${sessionId}/${kind}`;
}

/** Whether an address carries a signature in its query. */
export function presignedQuery(url: string): boolean {
  const at = url.indexOf('?');
  return (
    at >= 0 &&
    [...new URLSearchParams(url.slice(at + 1)).keys()].some((name) => /^x-amz-(signature|algorithm)$/i.test(name))
  );
}
