export { PeerForwarder } from './forward.ts';
export { peerAuthenticator } from './peer-authenticator.ts';
export { peerKey } from './peer-key.ts';
export { PEER_HEADER, PeerTokens } from './peer-token.ts';
