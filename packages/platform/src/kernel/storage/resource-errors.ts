/** A resource of this kind with this name (or ARN) exists already. */
export class DuplicateResourceError extends Error {
  readonly kind: string;
  readonly resourceName: string;

  constructor(kind: string, resourceName: string) {
    super(`a ${kind} named ${resourceName} exists already`);
    this.name = 'DuplicateResourceError';
    this.kind = kind;
    this.resourceName = resourceName;
  }
}

/** The resource was changed since it was read: read it again and decide anew. */
export class VersionConflictError extends Error {
  readonly arn: string;
  readonly expected: number;

  constructor(arn: string, expected: number) {
    super(`${arn} is no longer at version ${expected}: it was changed meanwhile`);
    this.name = 'VersionConflictError';
    this.arn = arn;
    this.expected = expected;
  }
}

/** There is no such resource. */
export class MissingResourceError extends Error {
  readonly arn: string;

  constructor(arn: string) {
    super(`${arn} does not exist`);
    this.name = 'MissingResourceError';
    this.arn = arn;
  }
}

/** The account has as many resources of this kind as it may have. */
export class TooManyResourcesError extends Error {
  constructor(kind: string, most: number) {
    super(`the account has ${most} resources of the kind ${kind}, which is the limit`);
    this.name = 'TooManyResourcesError';
  }
}

/** The resource would carry more tags than allowed. */
export class TooManyTagsError extends Error {
  readonly limit: number;

  constructor(arn: string, limit: number) {
    super(`${arn} would have more than ${limit} tags`);
    this.name = 'TooManyTagsError';
    this.limit = limit;
  }
}

/** The cursor of a list was not one that this store gave. */
export class InvalidCursorError extends Error {
  constructor() {
    super('the pagination token is not one that this list gave');
    this.name = 'InvalidCursorError';
  }
}
