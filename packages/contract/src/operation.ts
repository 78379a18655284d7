import type { OperationName } from './generated/types.ts';
import type { Plane } from './model.ts';

/** One operation of the contract as data. */
export interface Operation<K extends OperationName = OperationName> {
  readonly name: K;
  readonly plane: Plane;
  /** The service that requests are signed for, and the prefix of its actions in policies. */
  readonly signingName: string;
  /** The group that coverage counts it to: the first segment of its path, e.g. `runtimes`. */
  readonly piece: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path template with `{label}` segments. */
  readonly path: string;
  /** HTTP status of success. */
  readonly status: number;
  /** Names of the input and output shapes within the plane's model. */
  readonly input: string;
  readonly output: string;
  /** Error codes that the model lists for it. */
  readonly errors: readonly string[];
  readonly idempotent: boolean;
  readonly readonly: boolean;
  /** What the response body is: a JSON object, a blob handed through in parts, or an event stream. */
  readonly responds: 'json' | 'stream' | 'events';
}
