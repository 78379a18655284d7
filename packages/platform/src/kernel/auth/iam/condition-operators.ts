import ipaddr from 'ipaddr.js';
import { compileTemplate, parseTemplate, splitTemplate, type Template, type Variables } from './iam-policy-text.ts';

/** Tests one value of the request against one value of the policy. */
export type ValueTest = (actual: string, variables: Variables) => boolean;

export interface Operator {
  /** `…NotEquals` and the like: true where its positive twin is false. */
  negated: boolean;
  /** Throws `SyntaxError` saying what is wrong with a value of the policy. */
  compile(wanted: string, variables: boolean): ValueTest;
}

/** Every condition operator by lower-case name, without its set prefix and `IfExists` (IAM user guide, condition operators). */
export const operators: ReadonlyMap<string, Operator> = new Map(
  Object.entries({
    stringequals: positive(text(false)),
    stringnotequals: negative(text(false)),
    stringequalsignorecase: positive(ignoreCase),
    stringnotequalsignorecase: negative(ignoreCase),
    stringlike: positive(text(true)),
    stringnotlike: negative(text(true)),
    arnequals: positive(arn),
    arnnotequals: negative(arn),
    arnlike: positive(arn),
    arnnotlike: negative(arn),
    numericequals: positive(ordered(toNumber, (a, b) => a === b)),
    numericnotequals: negative(ordered(toNumber, (a, b) => a === b)),
    numericlessthan: positive(ordered(toNumber, (a, b) => a < b)),
    numericlessthanequals: positive(ordered(toNumber, (a, b) => a <= b)),
    numericgreaterthan: positive(ordered(toNumber, (a, b) => a > b)),
    numericgreaterthanequals: positive(ordered(toNumber, (a, b) => a >= b)),
    dateequals: positive(ordered(toTime, (a, b) => a === b)),
    datenotequals: negative(ordered(toTime, (a, b) => a === b)),
    datelessthan: positive(ordered(toTime, (a, b) => a < b)),
    datelessthanequals: positive(ordered(toTime, (a, b) => a <= b)),
    dategreaterthan: positive(ordered(toTime, (a, b) => a > b)),
    dategreaterthanequals: positive(ordered(toTime, (a, b) => a >= b)),
    bool: positive(bool),
    binaryequals: positive(binary),
    ipaddress: positive(ipAddress),
    notipaddress: negative(ipAddress),
  }),
);

type Compile = Operator['compile'];

function positive(compile: Compile): Operator {
  return { negated: false, compile };
}

function negative(compile: Compile): Operator {
  return { negated: true, compile };
}

function text(wildcards: boolean): Compile {
  return (wanted, variables) => compileTemplate(parseTemplate(wanted, { wildcards, variables }));
}

function ignoreCase(wanted: string, variables: boolean): ValueTest {
  const template: Template = parseTemplate(wanted, { wildcards: false, variables }).map((token) =>
    'text' in token ? { text: token.text.toLowerCase() } : token,
  );
  const test = compileTemplate(template);
  return (actual, values) => test(actual.toLowerCase(), (name) => values(name)?.toLowerCase());
}

function arn(wanted: string, variables: boolean): ValueTest {
  return compileArn(parseTemplate(wanted, { wildcards: true, variables }));
}

/**
 * An ARN pattern: each of the six parts is matched by itself, so that `*` does not reach over a colon except in the last.
 * `*` alone matches everything. Throws `SyntaxError` when it has fewer parts.
 */
export function compileArn(template: Template): ValueTest {
  const [only] = template;
  if (template.length === 1 && only && 'wild' in only && only.wild === '*') return () => true;
  const parts = splitTemplate(template, 6);
  if (parts.length < 6) throw new SyntaxError('is neither "*" nor an ARN of six parts');
  const tests = parts.map(compileTemplate);
  return (actual, values) => {
    const pieces = splitArn(actual);
    return pieces !== undefined && tests.every((test, i) => test(pieces[i] ?? '', values));
  };
}

function splitArn(value: string): string[] | undefined {
  const pieces: string[] = [];
  let from = 0;
  for (let i = 0; i < 5; i++) {
    const at = value.indexOf(':', from);
    if (at < 0) return undefined;
    pieces.push(value.slice(from, at));
    from = at + 1;
  }
  pieces.push(value.slice(from));
  return pieces;
}

function ordered(parse: (value: string) => number | undefined, test: (a: number, b: number) => boolean): Compile {
  return (wanted) => {
    const right = parse(wanted);
    if (right === undefined)
      throw new SyntaxError(`has "${wanted}" where a ${parse === toNumber ? 'number' : 'date'} belongs`);
    return (actual) => {
      const left = parse(actual);
      return left !== undefined && test(left, right);
    };
  };
}

function toNumber(value: string): number | undefined {
  return /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$/.test(value) ? Number(value) : undefined;
}

/** ISO 8601 (W3C profile) or seconds since 1970. */
function toTime(value: string): number | undefined {
  if (/^\d{1,12}$/.test(value)) return Number(value) * 1000;
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(value)) return undefined;
  const time = Date.parse(value);
  return Number.isNaN(time) ? undefined : time;
}

function bool(wanted: string): ValueTest {
  const right = wanted.toLowerCase();
  if (right !== 'true' && right !== 'false') throw new SyntaxError(`has "${wanted}" where true or false belongs`);
  return (actual) => actual.toLowerCase() === right;
}

function binary(wanted: string): ValueTest {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(wanted)) throw new SyntaxError(`has "${wanted}" where base64 belongs`);
  return (actual) => actual === wanted;
}

function ipAddress(wanted: string): ValueTest {
  const [base = '', bits, ...rest] = wanted.split('/');
  const network = ipaddr.isValid(base) ? ipaddr.parse(base) : undefined;
  const width = network?.kind() === 'ipv4' ? 32 : 128;
  const length = bits === undefined ? width : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (!network || rest.length > 0 || !(length <= width)) {
    throw new SyntaxError(`has "${wanted}" where an address or CIDR range belongs`);
  }
  return (actual) => {
    if (!ipaddr.isValid(actual)) return false;
    const address = ipaddr.process(actual);
    return address.kind() === network.kind() && address.match(network, length);
  };
}
