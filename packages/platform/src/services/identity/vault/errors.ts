/** Another request has changed the vault at the same time: read it again and decide anew. */
export class ConcurrentVaultChange extends Error {
  override name = 'ConcurrentVaultChange';

  constructor(cause: unknown) {
    super('the token vault was changed by another request at the same time', { cause });
  }
}
