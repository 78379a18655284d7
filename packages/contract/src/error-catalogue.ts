/** What one error code means wherever it is answered; a code never gets a second meaning. */
export interface ErrorKind {
  readonly status: number;
  /** Who has to change something: the caller or the platform. Clients retry the second kind. */
  readonly fault: 'client' | 'server';
  /** Where the code comes from: the published model, the common errors of AWS APIs, or this platform alone. */
  readonly origin: 'model' | 'aws' | 'platform';
  readonly meaning: string;
  /** What the caller can do about it in general; an error instance may know better. */
  readonly remedy: string;
}

const client = (status: number, origin: ErrorKind['origin'], meaning: string, remedy: string): ErrorKind => ({
  status,
  fault: 'client',
  origin,
  meaning,
  remedy,
});

const server = (status: number, origin: ErrorKind['origin'], meaning: string, remedy: string): ErrorKind => ({
  status,
  fault: 'server',
  origin,
  meaning,
  remedy,
});

/** The one list of error codes; docs are generated from it and a test holds it against the model. */
export const errorCatalogue = {
  ValidationException: client(
    400,
    'model',
    'The request is malformed or a field breaks a rule.',
    'Correct the fields named in fieldList.',
  ),
  InvalidInputException: client(
    400,
    'model',
    'The input cannot be used as given.',
    'Correct the input as the message says.',
  ),
  ResourceLimitExceededException: client(
    400,
    'model',
    'A resource holds as much as it may.',
    'Remove something, or raise the limit in the configuration.',
  ),
  EncryptionFailure: client(400, 'model', 'The key refused to encrypt.', 'Check the key and the permission to use it.'),
  DecryptionFailure: client(400, 'model', 'The key refused to decrypt.', 'Check the key and the permission to use it.'),
  UnauthorizedException: client(
    401,
    'model',
    'The caller is not known: a token is missing, expired or not accepted.',
    'Send a valid token of the accepted issuer.',
  ),
  ServiceQuotaExceededException: client(
    402,
    'model',
    'The account has as many of these as it may.',
    'Delete unused ones, or raise the quota in the configuration.',
  ),
  AccessDeniedException: client(
    403,
    'model',
    'The caller is known but not allowed to do this.',
    'Have a policy allow the action on this resource.',
  ),
  SubscriptionRequiredException: client(
    403,
    'model',
    'The product has to be subscribed to first.',
    'Subscribe at subscriptionUrl.',
  ),
  ResourceNotFoundException: client(
    404,
    'model',
    'What the request names does not exist for this caller.',
    'Check the identifier, account and region.',
  ),
  ConflictException: client(
    409,
    'model',
    'The resource is in a state that does not allow this.',
    'Wait for the state to change, or use another name.',
  ),
  ConcurrentModificationException: client(
    409,
    'model',
    'Somebody else changed the resource meanwhile.',
    'Read it again and repeat the change.',
  ),
  RetryableConflictException: client(409, 'model', 'The resource is busy for a moment.', 'Repeat the request.'),
  DuplicateIdException: client(409, 'model', 'The identifier is taken.', 'Use another identifier.'),
  RuntimeClientError: client(
    424,
    'model',
    "The agent's own code failed or does not answer.",
    "Read the agent's logs and correct the agent.",
  ),
  ModelTimeoutException: client(
    408,
    'model',
    'The model did not finish its answer in time.',
    'Ask for less, or raise models.timeoutSeconds.',
  ),
  ModelErrorException: client(
    424,
    'model',
    'The service of the model failed, or gave no answer that can be used.',
    'See what the platform logged of it; check the settings of the model.',
  ),
  ModelStreamErrorException: client(424, 'model', 'The answer of the model broke off.', 'Repeat the request.'),
  ModelNotReadyException: client(429, 'model', 'The model is not ready to answer yet.', 'Repeat later.'),
  ThrottlingException: client(429, 'model', 'Too many requests.', 'Repeat later, with growing pauses.'),
  ThrottledException: client(429, 'model', 'Too many requests.', 'Repeat later, with growing pauses.'),
  InternalServerException: server(
    500,
    'model',
    'The platform failed.',
    'Repeat; if it stays, look up the request id in the log.',
  ),
  ServiceException: server(
    500,
    'model',
    'The platform failed.',
    'Repeat; if it stays, look up the request id in the log.',
  ),
  IncompleteSignatureException: client(
    400,
    'aws',
    'The signature lacks a part or has a form that is not understood.',
    'Sign with an AWS SDK or by Signature Version 4.',
  ),
  MissingAuthenticationTokenException: client(
    403,
    'aws',
    'The request carries no credentials.',
    'Sign the request or send a bearer token.',
  ),
  UnrecognizedClientException: client(
    403,
    'aws',
    'The access key or session token is not known here.',
    'Use the credentials that the platform made; `agentcore env` prints them.',
  ),
  InvalidSignatureException: client(
    403,
    'aws',
    'The signature does not fit the request.',
    'Check the secret key, the region and proxies that alter requests.',
  ),
  ExpiredTokenException: client(403, 'aws', 'The session token has expired.', 'Fetch new temporary credentials.'),
  UnknownOperationException: client(
    404,
    'aws',
    'No operation has this method and path.',
    'Check the endpoint and the version of the client.',
  ),
  RequestEntityTooLargeException: client(
    413,
    'platform',
    'The body is larger than one of the platform’s own routes takes; for an operation it is a ValidationException.',
    'Send less, or raise the limit in the configuration.',
  ),
  NotImplementedException: server(
    501,
    'platform',
    'The operation belongs to the contract but is not built yet.',
    'See `npm run contract:coverage` for what is.',
  ),
  ServiceUnavailableException: server(
    503,
    'model',
    'The platform cannot serve now: it is starting, stopping, or lacks its database or disk.',
    'Repeat later.',
  ),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorCatalogue;

/** Whether `code` is one that this platform answers. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCatalogue, code);
}
