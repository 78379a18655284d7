export { PeerForwarder } from './forward.ts';
export { peerAuthenticator } from './peer-authenticator.ts';
export { PEER_HEADER, type PeerClaims, PeerTokens } from './peer-token.ts';
