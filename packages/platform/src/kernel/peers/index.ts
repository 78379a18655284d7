export { PeerForwarder } from './forward.ts';
export { peerAuthenticator } from './peer-authenticator.ts';
export { PEER_HEADER, PeerTokens } from './peer-token.ts';
