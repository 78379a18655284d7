/** The caller of a request, as established by authentication and used by authorization. */
export type Principal = IamPrincipal | OAuthPrincipal | AnonymousPrincipal;

/** A signed request: an access key of a user or short-lived credentials of a role. */
export interface IamPrincipal {
  kind: 'iam';
  accountId: string;
  /** arn:aws:iam::ACCOUNT:user/NAME or arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION */
  arn: string;
  accessKeyId: string;
  /** Tags of the role session (condition keys `aws:PrincipalTag/…`). */
  tags: Record<string, string>;
  /** The source identity that the first caller to assume a role gave. It is kept from role to role. */
  sourceIdentity?: string | undefined;
  /** Sandbox that the credentials were issued to, or that they were assumed with; they end with it. */
  sandboxId?: string | undefined;
  /** ARNs of what was given to the agent, function or target that the credentials were issued for, by whoever deployed it (`agentplatform:ResourceIsGiven`). */
  given?: readonly string[] | undefined;
}

/** A bearer token that a resource's own JWT authorizer accepted. */
export interface OAuthPrincipal {
  kind: 'oauth';
  /** The account that owns the resource whose authorizer accepted the token. */
  accountId: string;
  /** ARN of that resource: the token is for it, and for what belongs to it, alone. Absent: for nothing. */
  acceptedBy?: string | undefined;
  issuer: string;
  /**
   * Who vouches for the subject: the issuer, where the document that was asked is its own, else the address of that document. Whoever
   * chooses a document can have it name any issuer, so this is who the subject is one of wherever principals of several resources meet.
   */
  vouchedBy: string;
  /** Address of the document that named the keys; absent where an authority of the resource's own vouched for it. */
  discoveryUrl?: string | undefined;
  subject: string;
  claims: Readonly<Record<string, unknown>>;
  /** The token itself, for services that pass it on or exchange it. Never logged. */
  token: string;
  /** Tells it from every other token, and from itself where others vouched for it; says nothing of it. */
  digest: string;
}

/** An anonymous caller of a resource that its owner has opened to everybody. */
export interface AnonymousPrincipal {
  kind: 'anonymous';
  /** The account that owns the resource. */
  accountId: string;
  /** ARN of the resource: it is open, and what belongs to it, alone. */
  acceptedBy: string;
  /** The address from which the request came: the requests of one address share a rate. */
  address: string | undefined;
}
