/** The address of an issuer's discovery document (OpenID Connect Discovery 1.0, section 4). */
export function discoveryUrlOf(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
}

/** Whose document that is: what comes before the well-known part of its address, in either form (RFC 8414 puts the issuer's path behind it). */
export function issuerOf(discoveryUrl: string): string {
  const url = new URL(discoveryUrl);
  const [before = '', after = ''] = url.pathname.split(
    /\/\.well-known\/(?:openid-configuration|oauth-authorization-server)/,
  );
  return `${url.origin}${before}${after}`;
}
