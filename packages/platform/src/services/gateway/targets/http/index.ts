export { httpProblem } from './check-http-target.ts';
export { NO_TOOLS } from './no-tools.ts';
export { PassthroughKind } from './passthrough-kind.ts';
export { RuntimeKind } from './runtime-kind.ts';
