export { loginWithAccessKey } from './access-key-login.ts';
export { AwsChunkedDecoder } from './aws-chunked.ts';
export { type GatedBody, gateBody, type Hold } from './body-gate.ts';
export { CARRIED_SESSION_HEADER } from './carried-session-header.ts';
export { type CertificateAuthorityDeps, certificateAuthority } from './certificate-authority.ts';
export { discoveryUrlOf, issuerOf } from './discovery-url.ts';
export { formerlyGiven, givenResources } from './given-resources.ts';
export { createAuthorizer } from './iam/authorizer.ts';
export { PROFILE, writeCredentialsFile } from './iam/credentials-file.ts';
export { type Iam, openIam } from './iam/iam.ts';
export type { PolicyOwner } from './iam/iam-admin.ts';
export { IamDirectory } from './iam/iam-directory.ts';
export { roleArn, rootArn, userArn } from './iam/iam-ids.ts';
export { parsePolicy } from './iam/iam-policy-document.ts';
export { evaluate } from './iam/iam-policy-evaluator.ts';
export type { Role, User } from './iam/iam-records.ts';
export { createMemoryIamStore } from './iam/iam-store.ts';
export type { Sealer } from './iam/ports.ts';
export type { SessionCredentials } from './iam/role-sessions.ts';
export { CREDENTIALS_PATH, SandboxCredentials, type SandboxRole } from './iam/sandbox-credentials.ts';
export { createSqlIamStore, iamMigrations } from './iam/sql-iam-store.ts';
export { createJwtAuthenticator, type JwtAuthenticator, tokenEnd } from './jwt.ts';
export { type Claims, checkConfiguration, checkRules } from './jwt-rules.ts';
export { createOidcDiscovery } from './oidc-discovery.ts';
export { assumedRoleArn, ownerOf } from './owner-of.ts';
export { checkPassedRole } from './passed-role.ts';
export type { AnonymousPrincipal, IamPrincipal, OAuthPrincipal, Principal } from './principal.ts';
export {
  type SignedOutboundRequest,
  type SigningCredentials,
  signRequest,
  type UnsignedRequest,
} from './sign-request.ts';
export { isSignedFor } from './signed-for.ts';
export {
  type AccessKeyStore,
  type Authenticated,
  type AuthenticatedBody,
  type Authenticator,
  type Credential,
  createAuthenticator,
  type SignedRequest,
} from './sigv4.ts';
export { isSignable } from './sigv4-canonical.ts';
export { formatTimestamp } from './sigv4-claim.ts';
export { createSpool, type Spool, type SpooledBody } from './spool.ts';
export { WORKLOAD_TOKEN_HEADERS } from './workload-token-headers.ts';
