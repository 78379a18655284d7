/** A stored secret does not open: it was altered, moved to another name, or the master key it was sealed with is gone. */
export class SecretIntegrityError extends Error {
  override name = 'SecretIntegrityError';
}

/** The master key cannot be used as it is; the message says how to put it right. */
export class MasterKeyError extends Error {
  override name = 'MasterKeyError';
}
