import type { Socket } from 'node:net';

/** What the two sides of a mount write to each other, one JSON value a line. 2: a directory for each process, fetch with a bound. */
export const PROTOCOL = 2;

/** The first line of the process that serves a mount: whom it serves, and whether it could. */
export interface Hello {
  hello: { protocol: number; id: string; source: string; pid: number; failure?: string };
}
export interface Call {
  call: number;
  op: string;
  args: unknown[];
}
export interface Note {
  note: string;
}
export interface Answer {
  answer: number;
  result?: unknown;
  errno?: string;
}
/** The mount is given up; the process ends when all it holds is stored. */
export interface End {
  end: true;
}

/** Longest line, in UTF-16 units. A directory of very many very long names makes a longer one. */
export const MAX_LINE = 64 * 2 ** 20;

const CALL_MS = 60_000;
/** Of what moves contents: as large as files here may be, over a slow line. */
const LONG_CALL_MS = 600_000;
const LONG = new Set(['fetch', 'store', 'rename']);

/** How long the platform works at a call, in milliseconds. */
export function callMs(op: string): number {
  return LONG.has(op) ? LONG_CALL_MS : CALL_MS;
}

/** False, with nothing written, when the line would be too long for the other side. */
export function writeLine(socket: Socket, value: Hello | Call | Note | Answer | End): boolean {
  const line = JSON.stringify(value);
  if (line.length > MAX_LINE) return false;
  if (!socket.destroyed) socket.write(`${line}\n`);
  return true;
}

/** Calls back with each line's value; a peer that writes no lines is cut off. */
export function onLines(socket: Socket, take: (value: unknown) => void): void {
  let parts: string[] = [];
  let length = 0;
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const lines = text.split('\n');
    const rest = lines.pop() ?? '';
    for (const line of lines) {
      const whole = parts.join('') + line;
      parts = [];
      length = 0;
      try {
        take(JSON.parse(whole));
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
        return;
      }
    }
    parts.push(rest);
    length += rest.length;
    if (length > MAX_LINE) socket.destroy(new Error('a line is too long'));
  });
}
