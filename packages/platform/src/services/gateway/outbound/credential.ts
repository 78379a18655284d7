import type { SignedOutboundRequest, UnsignedRequest } from '../../../kernel/auth/index.ts';

/** What goes with a request to a target. */
export interface Credential {
  headers: Readonly<Record<string, string>>;
  query: readonly (readonly [name: string, value: string])[];
  /** What of it nobody may read in an answer. */
  secrets: readonly string[];
  /**
   * Who it is at a target; connections are shared by those who are the same. Without keys in it, who renews them stays who he is. With a token of OAuth it
   * says whose that is: a user's, by which provider. Without one, each credential is somebody of its own.
   */
  identity?: readonly unknown[] | undefined;
  /** Signs a request with all that it has otherwise. Rejects with ToolError where it may not be signed. */
  sign?: ((request: RequestToSign) => Promise<SignedOutboundRequest>) | undefined;
}

export interface RequestToSign extends UnsignedRequest {
  /** The service that it is for, where the tool knows it; what the target says counts first. */
  service?: string | undefined;
}

export const NO_CREDENTIAL: Credential = { headers: {}, query: [], secrets: [] };
