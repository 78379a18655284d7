import type { ClientAuth } from 'oauth4webapi';

/**
 * `client_secret_basic` (RFC 6749, section 2.3.1). Letters, digits and `*-._` stand as they are: their encoding is the same to a server that
 * decodes, and many vendors' do not. The one of `oauth4webapi` encodes them, too.
 */
export function clientSecretBasic(secret: string): ClientAuth {
  return (_server, { client_id: id }, _body, headers) => {
    headers.set('authorization', `Basic ${btoa(`${formEncoded(id)}:${formEncoded(secret)}`)}`);
  };
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}
