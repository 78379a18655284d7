import type { ErrorObject } from 'ajv';
import { CliError } from './cli-error.ts';

/** A part of a JSON Schema, as far as it tells what stands in a file. */
interface Part {
  type?: unknown;
  description?: string;
  properties?: Record<string, Part>;
  items?: Part;
  anyOf?: Part[];
}

/** What is wrong with a file by its schema: a line for each field, each once. `ofName`: what is said of a name that is not allowed. */
export function schemaProblems(errors: readonly ErrorObject[], schema: Part, ofName?: string): string[] {
  // Where one of several things is wanted, each says why it is not that one: the one that comes nearest is told.
  const choices = errors.filter(({ keyword }) => keyword === 'anyOf').map(({ instancePath }) => instancePath);
  const deeper = (path: string) =>
    errors.some(
      (error) =>
        error.instancePath.startsWith(`${path}/`) ||
        (error.instancePath === path && !/^(?:type|anyOf)$/.test(error.keyword)),
    );
  const told = errors.filter(({ keyword, instancePath: path }) => {
    if (keyword === 'anyOf') return !deeper(path);
    return !(keyword === 'type' && choices.includes(path));
  });
  return [...new Set(told.map((error) => sentence(error, schema, ofName)))];
}

/** That a file is wrong, with a line for each problem. */
export function wrongFile(path: string, problems: readonly string[]): CliError {
  const lines = [...new Set(problems)].map((problem) => `  ${problem}`).join('\n');
  return new CliError('usage', `${path} is wrong:\n${lines}`);
}

function sentence(error: ErrorObject, schema: Part, ofName: string | undefined): string {
  const field = error.instancePath.slice(1).replaceAll('/', '.') || 'the file';
  const params: Record<string, unknown> = error.params;
  // Of a name that is wrong there are two errors: what is wrong, and that the name is.
  const name = error.propertyName ?? params.propertyName;
  if (name !== undefined && ofName !== undefined) return `${field}.${name}: ${ofName}`;
  const within = field === 'the file' ? '' : `${field}.`;
  switch (error.keyword) {
    case 'required':
      return `${within}${params.missingProperty}: is missing`;
    case 'additionalProperties':
      return `${within}${params.additionalProperty}: no such field; known are ${knownFields(field, schema)}`;
    case 'enum':
      return `${field}: must be one of ${Array.isArray(params.allowedValues) ? params.allowedValues.join(', ') : ''}`;
    case 'pattern':
      return `${field}: ${described(field, schema) ?? `must match ${params.pattern}`}`;
    case 'anyOf':
      return `${field}: must be ${branchesOf(partOf(field, schema))
        .flatMap(({ type }) => (type === undefined ? [] : String(type)))
        .join(' or ')}`;
    default:
      return `${field}: ${error.message ?? 'is wrong'}`;
  }
}

/** The part of the schema that a field such as `filesystems.0.sessionStorage` is held to. */
function partOf(field: string, schema: Part): Part | undefined {
  const steps = field === 'the file' ? [] : field.split('.');
  return steps.reduce<Part | undefined>(
    (part, step) =>
      branchesOf(part)
        .map((one) => one.properties?.[step] ?? one.items)
        .find(Boolean),
    schema,
  );
}

function branchesOf(part: Part | undefined): Part[] {
  return part ? (part.anyOf ?? [part]) : [];
}

function described(field: string, schema: Part): string | undefined {
  const description = partOf(field, schema)?.description;
  return description ? `is not allowed. ${description}` : undefined;
}

function knownFields(field: string, schema: Part): string {
  return branchesOf(partOf(field, schema))
    .flatMap(({ properties = {} }) => Object.keys(properties))
    .filter((name) => name !== '$schema')
    .join(', ');
}
