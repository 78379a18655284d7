export { httpProblem } from './check-http-target.ts';
export { HttpConnectorKind } from './connector-kind.ts';
export { NO_TOOLS } from './no-tools.ts';
export { OwnRequests } from './own-requests.ts';
export { PassthroughKind } from './passthrough-kind.ts';
export { RuntimeKind } from './runtime-kind.ts';
