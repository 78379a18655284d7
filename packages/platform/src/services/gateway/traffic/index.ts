export { BackendRequests } from './backend-requests.ts';
export { noSockets } from './no-sockets.ts';
export { answeredHeaders, sentHeaders } from './passed-headers.ts';
export { TrafficRequest } from './traffic-request.ts';
export { type Aimed, type TrafficHandler, TrafficRequests } from './traffic-requests.ts';
