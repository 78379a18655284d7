/** First byte of every frame of an interactive shell (COMPATIBILITY 1, "Shell"). */
export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, heartbeat: 5, close: 0xff } as const;

/** Largest frame in bytes, channel included. */
export const MAX_FRAME_BYTES = 64 * 1024;

export type ShellInput =
  | { channel: 'stdin'; data: Buffer }
  | { channel: 'resize'; columns: number; rows: number }
  | { channel: 'heartbeat' }
  | { channel: 'close' }
  /** A channel that is not known: it is passed over, as later versions of the protocol may have more. */
  | { channel: 'other' };

/** Reads a client's frame; undefined when it breaks the protocol. */
export function readFrame(frame: Buffer): ShellInput | undefined {
  const [channel] = frame;
  const data = frame.subarray(1);
  if (channel === undefined) return undefined;
  if (channel === CHANNEL.stdin) return { channel: 'stdin', data };
  if (channel === CHANNEL.resize) return readResize(data);
  if (channel === CHANNEL.heartbeat) return { channel: 'heartbeat' };
  if (channel === CHANNEL.close) return { channel: 'close' };
  return { channel: 'other' };
}

function readResize(data: Buffer): ShellInput | undefined {
  try {
    const { width, height }: { width?: unknown; height?: unknown } = Object(JSON.parse(data.toString()));
    return isSize(width) && isSize(height) ? { channel: 'resize', columns: width, rows: height } : undefined;
  } catch {
    return undefined;
  }
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 10_000;
}

/** One frame. */
export function frameOf(channel: number, data: Uint8Array | string = ''): Buffer {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data;
  const frame = Buffer.allocUnsafe(bytes.length + 1);
  frame[0] = channel;
  frame.set(bytes, 1);
  return frame;
}

/** Output in frames that are not too large. */
export function* outputFrames(channel: number, data: Buffer): Iterable<Buffer> {
  for (let at = 0; at < data.length; at += MAX_FRAME_BYTES - 1)
    yield frameOf(channel, data.subarray(at, at + MAX_FRAME_BYTES - 1));
}

/** The status that confirms a connection. */
export function connectedStatus(shellId: string, reconnected: boolean): Buffer {
  return statusFrame({ metadata: { shellId, reconnected }, status: 'Success' });
}

/** The status that tells how the shell ended; a status above 128 is that of a signal. */
export function exitStatus(code: number): Buffer {
  if (code === 0) return statusFrame({ metadata: {}, status: 'Success' });
  const causes = [{ reason: 'ExitCode', message: String(code) }];
  if (code > 128) causes.push({ reason: 'Signal', message: String(code - 128) });
  const message = `command terminated with exit code ${code}`;
  return statusFrame({ metadata: {}, status: 'Failure', reason: 'NonZeroExitCode', message, details: { causes } });
}

/** The status of a shell that could not be had for a reason of the platform. */
export function failedStatus(message: string): Buffer {
  return statusFrame({ metadata: {}, status: 'Failure', reason: 'InternalError', message, code: 500 });
}

function statusFrame(status: Record<string, unknown>): Buffer {
  return frameOf(CHANNEL.status, JSON.stringify({ kind: 'Status', apiVersion: 'v1', ...status }));
}
