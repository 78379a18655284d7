import { canonicalJson, type DocumentValue } from '@agentplatform/contract';
import { isDeeperThan } from '../../../kernel/depth.ts';
import { atPointer, isObject, own, pointerTo } from './json-pointer.ts';
import { type SearchPattern, searchPattern } from './patterns.ts';
import type { JsonObject, JsonSchema } from './tool.ts';

/** One way in which arguments differ from a tool's schema. */
export interface ArgumentProblem {
  /** JSON pointer into the arguments; empty for the arguments themselves. */
  path: string;
  /** Continues a sentence that begins with the path. */
  message: string;
}

/** Describes what is wrong with a value; undefined if it conforms. */
export type CheckArguments = (value: DocumentValue) => ArgumentProblem[];

/** Schemas that one check may look at (a long text counts for several), how deep, and how many problems it names. */
const MOST_STEPS = 200_000;
const MOST_DEPTH = 256;
const MOST_PROBLEMS = 20;
/** Patterns that one schema keeps compiled; what is behind the last of them is left to the backend. */
const MOST_PATTERNS = 500;

/**
 * Reads a schema (JSON Schema 2020-12, and what differs in draft 7) once, for checks of many values. It is interpreted, and no code is made
 * of it; patterns match in linear time; the work of a check is bounded whatever schema and value are. `format`, `unevaluated…` and patterns
 * that cannot be matched so are not checked. The common libraries make code of a schema (Ajv) or give its patterns to `RegExp` without a say.
 */
export function compileArguments(schema: JsonSchema, { mostSteps = MOST_STEPS } = {}): CheckArguments {
  const patterns = new Map<string, SearchPattern | undefined>();
  return (value) => {
    if (isDeeperThan(value, MOST_DEPTH)) return [{ path: '', message: `is nested deeper than ${MOST_DEPTH} levels` }];
    const check = new Check(schema, patterns, mostSteps);
    check.run(value);
    return check.problems;
  };
}

class Stopped extends Error {
  override readonly name = 'Stopped';
}

type At = { path: string; depth: number };

class Check {
  readonly problems: ArgumentProblem[] = [];
  readonly #root: JsonSchema;
  readonly #patterns: Map<string, SearchPattern | undefined>;
  #stepsLeft: number;
  /** Alternatives are tried without telling what is wrong with each. */
  #silent = 0;
  #failed = false;

  constructor(root: JsonSchema, patterns: Map<string, SearchPattern | undefined>, mostSteps: number) {
    this.#root = root;
    this.#patterns = patterns;
    this.#stepsLeft = mostSteps;
  }

  run(value: DocumentValue): void {
    try {
      this.#check(this.#root, value, { path: '', depth: 0 });
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      if (this.problems.length === 0) this.problems.push({ path: '', message: error.message });
    }
  }

  #spend(steps: number): void {
    this.#stepsLeft -= steps;
    if (this.#stepsLeft < 0) throw new Stopped('takes too long to be checked against its schema');
  }

  #check(schema: DocumentValue | undefined, value: DocumentValue, at: At): void {
    this.#spend(1);
    if (at.depth > MOST_DEPTH) throw new Stopped(`has a schema that is nested deeper than ${MOST_DEPTH} levels`);
    if (schema === false) this.#say(at.path, 'must not be there');
    if (!isObject(schema)) return;
    const deeper = { path: at.path, depth: at.depth + 1 };
    if (typeof schema.$ref === 'string') this.#check(this.#resolve(schema.$ref), value, deeper);
    this.#checkType(schema, value, at.path);
    this.#checkEqual(schema, value, at.path);
    if (typeof value === 'string') this.#checkString(schema, value, at.path);
    else if (typeof value === 'number') this.#checkNumber(schema, value, at.path);
    else if (Array.isArray(value)) this.#checkArray(schema, value, deeper);
    else if (isObject(value)) this.#checkObject(schema, value, deeper);
    this.#checkCombined(schema, value, deeper);
  }

  /** A `$ref` that leads nowhere was said when the schema was taken in; here it allows everything. */
  #resolve(ref: string): DocumentValue | undefined {
    if (!ref.startsWith('#') || typeof this.#root === 'boolean') return undefined;
    return atPointer(this.#root, ref.slice(1));
  }

  #checkType({ type }: JsonObject, value: DocumentValue, path: string): void {
    const types = Array.isArray(type) ? type : type === undefined ? [] : [type];
    if (types.length > 0 && !types.some((one) => isOfType(one, value)))
      this.#say(path, `must be ${types.map(String).join(' or ')}, not ${typeName(value)}`);
  }

  #checkEqual(schema: JsonObject, value: DocumentValue, path: string): void {
    if (schema.const !== undefined && !this.#isOneOf([schema.const], value))
      this.#say(path, `must be ${shown(JSON.stringify(schema.const))}`);
    if (Array.isArray(schema.enum) && !this.#isOneOf(schema.enum, value))
      this.#say(
        path,
        `must be one of ${shown(
          schema.enum
            .slice(0, 50)
            .map((one) => JSON.stringify(one))
            .join(', '),
        )}`,
      );
  }

  #isOneOf(allowed: DocumentValue[], value: DocumentValue): boolean {
    this.#spend(allowed.length >> 4);
    if (typeof value !== 'object' || value === null) return allowed.includes(value);
    const text = this.#canonical(value);
    return allowed.some((one) => typeof one === 'object' && one !== null && this.#canonical(one) === text);
  }

  #canonical(value: DocumentValue): string {
    const text = canonicalJson(value);
    this.#spend(text.length >> 6);
    return text;
  }

  #checkString({ minLength, maxLength, pattern }: JsonObject, value: string, path: string): void {
    this.#spend(value.length >> 6);
    if (typeof minLength === 'number' || typeof maxLength === 'number') {
      const length = lengthOf(value);
      if (typeof minLength === 'number' && length < minLength)
        this.#say(path, `must have at least ${minLength} characters, not ${length}`);
      if (typeof maxLength === 'number' && length > maxLength)
        this.#say(path, `must have at most ${maxLength} characters, not ${length}`);
    }
    if (typeof pattern === 'string' && !this.#matches(pattern, value))
      this.#say(path, `must match the pattern ${shown(pattern)}`);
  }

  #checkNumber(schema: JsonObject, value: number, path: string): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    if (typeof minimum === 'number' && value < minimum) this.#say(path, `must be at least ${minimum}`);
    if (typeof maximum === 'number' && value > maximum) this.#say(path, `must be at most ${maximum}`);
    if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum)
      this.#say(path, `must be more than ${exclusiveMinimum}`);
    if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum)
      this.#say(path, `must be less than ${exclusiveMaximum}`);
    if (typeof multipleOf === 'number' && multipleOf > 0 && !isMultiple(value, multipleOf))
      this.#say(path, `must be a multiple of ${multipleOf}`);
  }

  #checkArray(schema: JsonObject, value: DocumentValue[], at: At): void {
    const { minItems, maxItems, uniqueItems } = schema;
    if (typeof minItems === 'number' && value.length < minItems)
      this.#say(at.path, `must have at least ${minItems} items, not ${value.length}`);
    if (typeof maxItems === 'number' && value.length > maxItems)
      this.#say(at.path, `must have at most ${maxItems} items, not ${value.length}`);
    if (uniqueItems === true && new Set(value.map((item) => this.#canonical(item))).size < value.length)
      this.#say(at.path, 'must not have an item twice');
    const tuple = Array.isArray(schema.items) ? schema.items : schema.prefixItems;
    const first = Array.isArray(tuple) ? tuple : [];
    const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
    for (const [index, item] of value.entries()) {
      const of = index < first.length ? first[index] : rest;
      if (of !== undefined) this.#check(of, item, { path: pointerTo(at.path, index), depth: at.depth });
    }
    if (schema.contains !== undefined) this.#checkContains(schema, value, at);
  }

  #checkContains({ contains, minContains, maxContains }: JsonObject, value: DocumentValue[], at: At): void {
    const found = value.filter((item) => this.#conforms(contains, item, at)).length;
    const least = typeof minContains === 'number' ? minContains : 1;
    if (found < least) this.#say(at.path, `must contain ${least} items of a certain kind, not ${found}`);
    if (typeof maxContains === 'number' && found > maxContains)
      this.#say(at.path, `must contain at most ${maxContains} items of a certain kind, not ${found}`);
  }

  #checkObject(schema: JsonObject, value: JsonObject, at: At): void {
    const names = Object.keys(value).filter((name) => value[name] !== undefined);
    const { minProperties, maxProperties } = schema;
    if (typeof minProperties === 'number' && names.length < minProperties)
      this.#say(at.path, `must have at least ${minProperties} properties, not ${names.length}`);
    if (typeof maxProperties === 'number' && names.length > maxProperties)
      this.#say(at.path, `must have at most ${maxProperties} properties, not ${names.length}`);
    this.#checkRequired(schema.required, value, at.path);
    for (const name of names) this.#checkProperty(schema, name, value[name] ?? null, at);
    this.#checkDependent(schema, value, at);
  }

  #checkRequired(required: DocumentValue | undefined, value: JsonObject, path: string): void {
    const names = listOf(required);
    this.#spend(names.length >> 2);
    for (const name of names)
      if (typeof name === 'string' && own(value, name) === undefined) this.#say(pointerTo(path, name), 'is missing');
  }

  #checkProperty(schema: JsonObject, name: string, value: DocumentValue, at: At): void {
    const inside = { path: pointerTo(at.path, name), depth: at.depth };
    if (schema.propertyNames !== undefined && !this.#conforms(schema.propertyNames, name, at))
      this.#say(inside.path, 'has a name that is not allowed');
    let known = false;
    const declared = isObject(schema.properties) ? own(schema.properties, name) : undefined;
    if (declared !== undefined) {
      known = true;
      this.#check(declared, value, inside);
    }
    for (const [pattern, of] of entriesOf(schema.patternProperties)) {
      this.#spend(1);
      if (!this.#matches(pattern, name)) continue;
      known = true;
      this.#check(of, value, inside);
    }
    if (known || schema.additionalProperties === undefined) return;
    if (schema.additionalProperties === false) this.#say(inside.path, 'is not known');
    else this.#check(schema.additionalProperties, value, inside);
  }

  #checkDependent(schema: JsonObject, value: JsonObject, at: At): void {
    const dependent = [
      ...entriesOf(schema.dependentRequired),
      ...entriesOf(schema.dependentSchemas),
      ...entriesOf(schema.dependencies),
    ];
    for (const [name, needs] of dependent) {
      if (own(value, name) === undefined) continue;
      if (Array.isArray(needs)) this.#checkRequired(needs, value, at.path);
      else this.#check(needs, value, at);
    }
  }

  #checkCombined(schema: JsonObject, value: DocumentValue, at: At): void {
    for (const one of listOf(schema.allOf)) this.#check(one, value, at);
    if (Array.isArray(schema.anyOf)) this.#checkAny(schema.anyOf, value, at);
    if (Array.isArray(schema.oneOf)) {
      const found = schema.oneOf.filter((one) => this.#conforms(one, value, at)).length;
      if (found === 0) this.#checkAny(schema.oneOf, value, at);
      else if (found > 1) this.#say(at.path, `conforms to ${found} of its alternatives, and must to one`);
    }
    if (schema.not !== undefined && this.#conforms(schema.not, value, at))
      this.#say(at.path, 'is of a kind that is not allowed');
    if (schema.if === undefined) return;
    const follows = this.#conforms(schema.if, value, at) ? schema.then : schema.else;
    if (follows !== undefined) this.#check(follows, value, at);
  }

  /** Where one alternative alone is of the right type, what is wrong with that one is the better answer. */
  #checkAny(alternatives: DocumentValue[], value: DocumentValue, at: At): void {
    if (alternatives.some((one) => this.#conforms(one, value, at))) return;
    const fitting = alternatives.filter((one) => isObject(one) && isOfType(one.type, value));
    const [only] = fitting;
    if (only !== undefined && fitting.length === 1) this.#check(only, value, at);
    else this.#say(at.path, `conforms to none of its ${alternatives.length} alternatives`);
  }

  #conforms(schema: DocumentValue | undefined, value: DocumentValue, at: At): boolean {
    const before = this.#failed;
    this.#failed = false;
    this.#silent += 1;
    this.#check(schema, value, at);
    this.#silent -= 1;
    const conforms = !this.#failed;
    this.#failed = before;
    return conforms;
  }

  /** Whether a text matches; so it does where the pattern is one that is left to the backend. A long text and a large pattern cost accordingly. */
  #matches(source: string, text: string): boolean {
    const pattern = this.#pattern(source);
    if (!pattern) return true;
    this.#spend(Math.ceil((text.length * pattern.size) / 4));
    return pattern.test(text);
  }

  #pattern(source: string): SearchPattern | undefined {
    if (this.#patterns.has(source)) return this.#patterns.get(source);
    if (this.#patterns.size >= MOST_PATTERNS) return undefined;
    const pattern = searchPattern(source);
    this.#patterns.set(source, pattern);
    return pattern;
  }

  #say(path: string, message: string): void {
    this.#failed = true;
    if (this.#silent > 0 || this.problems.some((one) => one.path === path && one.message === message)) return;
    this.problems.push({ path, message });
    if (this.problems.length >= MOST_PROBLEMS) throw new Stopped('');
  }
}

function isOfType(type: DocumentValue | undefined, value: DocumentValue): boolean {
  if (type === 'integer') return typeof value === 'number' && Number.isInteger(value);
  return type === 'number' ? typeof value === 'number' : type === typeName(value);
}

function typeName(value: DocumentValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Characters, as JSON Schema counts them: code points. */
function lengthOf(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) length += 1;
  return length;
}

/** 0.3 is a multiple of 0.1 for people, and not for binary fractions. */
function isMultiple(value: number, of: number): boolean {
  const times = value / of;
  return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times));
}

const listOf = (value: DocumentValue | undefined): DocumentValue[] => (Array.isArray(value) ? value : []);
const entriesOf = (value: DocumentValue | undefined): [string, DocumentValue | undefined][] =>
  isObject(value) ? Object.entries(value) : [];
const shown = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
