import type { DestinationStream } from 'pino';

const colours: Record<string, string> = { error: '31', fatal: '31', warn: '33', info: '32', debug: '90', trace: '90' };

/** Turns each JSON line of a logger into one for people: `12:01:02.345 info  message  key=value`, an error's stack below. */
export function prettyLines(sink: DestinationStream): DestinationStream {
  return { write: (line) => sink.write(prettyLine(line)) };
}

function prettyLine(line: string): string {
  const { level, time, msg, err, error, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const label = String(level);
  const rest = Object.entries(fields).map(
    ([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const at = String(time).slice(11, 23);
  const head = `\x1b[90m${at}\x1b[0m \x1b[${colours[label] ?? '0'}m${label.padEnd(5)}\x1b[0m ${withoutControls(String(msg ?? ''))}`;
  return `${head}\x1b[90m${withoutControls(rest.join(''))}\x1b[0m\n${stackOf(err ?? error)}`;
}

function stackOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return '';
  const { type: _type, message, stack, cause, ...rest } = value as Record<string, unknown>;
  const more = Object.keys(rest).length === 0 ? '' : `\n${JSON.stringify(rest)}`;
  const below = stackOf(cause);
  return `    ${withoutControls(`${stack ?? message}${more}`, '\n    ')}\n${below === '' ? '' : `    caused by\n${below}`}`;
}

/** What an agent or a client wrote must not steer the terminal of the person who reads it. */
function withoutControls(text: string, newline = '⏎'): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
  return text.replace(/\r?\n/g, newline).replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, '·');
}
