import {
  type Bindings,
  type ChildLoggerOptions,
  type DestinationStream,
  type LogFn,
  type Logger,
  pino,
  stdTimeFunctions,
} from 'pino';
import { type Clock, systemClock } from '../clock.ts';
import { LineBudget, type Told } from './line-budget.ts';
import { prettyLines } from './pretty.ts';
import { redact, redactText } from './redact.ts';

/** How a logger is made. */
export interface LoggerOptions {
  /** error = a person must act · warn = degraded · info = life cycle · debug = the path of one request. */
  level: 'error' | 'warn' | 'info' | 'debug' | 'silent';
  format: 'pretty' | 'json';
  /** Where lines go; stderr when left out, since stdout belongs to what a program answers. */
  destination?: DestinationStream;
  clock?: Pick<Clock, 'monotonic'>;
}

/**
 * The logger that every part is given (or a child of it). What is logged is searched for secrets first: by the name of
 * a field at any depth, by shape and place in text, in messages, errors and their causes.
 */
export function createLogger({ level, format, destination, clock = systemClock }: LoggerOptions): Logger {
  // Written at once: the last lines before a crash are the ones that matter.
  const sink = destination ?? { write: (line: string) => void process.stderr.write(line) };
  const budget = new LineBudget(clock);
  const logger = pino(
    {
      level,
      base: undefined,
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: redact, error: redact },
      formatters: { level: (label) => ({ level: label }), log: (fields) => record(redact(fields)) },
      hooks: {
        logMethod(args, method, levelNumber) {
          const clean = cleanArguments(args);
          const told = levelNumber < INFO ? NOTHING_HELD : budget.take(kindOf(clean), levelNumber >= ERROR);
          if (told) method.apply(told.held === 0 && !told.last ? this : this.child(aboutHeld(told)), clean);
        },
      },
    },
    format === 'pretty' ? prettyLines(sink) : sink,
  );
  // Fields of a child are written out when it is made and pass no formatter. Children inherit this method.
  const child: (this: Logger, fields: Bindings, options?: ChildLoggerOptions) => Logger = logger.child;
  return Object.assign(logger, {
    child(this: Logger, fields: Bindings, options?: ChildLoggerOptions): Logger {
      return child.call(this, record(redact(fields)), options);
    },
  });
}

/** Pino's numbers of the levels. */
const INFO = 30;
const ERROR = 50;

const NOTHING_HELD: Told = { held: 0, last: false };

/** Fields of a line beside which others were, or are going to be, held back. */
function aboutHeld({ held, last }: Told): Bindings {
  return { ...(held > 0 && { heldBack: held }), ...(last && { holdsBackMore: 'for the rest of a minute' }) };
}

/** What a line says, without what it says it of. */
function kindOf([first, message]: Parameters<LogFn>): string {
  return String(typeof first === 'string' ? first : message);
}

/** What a log method was called with, fit to be written; an error's message is cleaned too where it becomes the line's own. */
function cleanArguments([first, message, ...values]: unknown[]): Parameters<LogFn> {
  const clean = values.map(redact);
  if (typeof first === 'string')
    return [redactText(first), ...(message === undefined ? [] : [redact(message)]), ...clean] as Parameters<LogFn>;
  const error = first instanceof Error ? first : record(first).err;
  const text = message ?? (error instanceof Error ? error.message : undefined);
  // An object becomes the fields of the line and passes the formatter.
  return [
    first instanceof Error ? { err: first } : first,
    text === undefined ? undefined : redactText(String(text)),
    ...clean,
  ];
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** The format that `auto` stands for: people read a terminal, programs everything else. */
export function logFormat(
  format: 'auto' | 'pretty' | 'json',
  isTerminal = process.stderr.isTTY === true,
): 'pretty' | 'json' {
  return format === 'auto' ? (isTerminal ? 'pretty' : 'json') : format;
}
