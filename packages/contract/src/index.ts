export type { Arn } from './arn.ts';
export { formatArn, parseArn } from './arn.ts';
export { canonicalJson } from './canonical-json.ts';
export type { BodyRule } from './codec/body-rule.ts';
export {
  bodyRule,
  checkInput,
  decodeRequest,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  outputProblems,
} from './codec/codec.ts';
export { encodeError } from './codec/error-encoder.ts';
export { holdsTooMuch } from './codec/json-values.ts';
export type { ClientRequest } from './codec/request-encoder.ts';
export type { ReceivedResponse } from './codec/response-decoder.ts';
export type { WireResponse } from './codec/response-encoder.ts';
export type { WireRequest } from './codec/wire-request.ts';
export type { CoverageEntry, CoverageReport, PieceCoverage } from './coverage.ts';
export { coverageRecorder, coverageReport, coverageVariable, drivenOperations } from './coverage.ts';
export type { ErrorCode, ErrorKind } from './error-catalogue.ts';
export { errorCatalogue, isErrorCode } from './error-catalogue.ts';
export type { ErrorOptions, FieldProblem, ValidationReason } from './errors.ts';
export { errors, ownErrors, ServiceError } from './errors.ts';
export { modelVersion, operations } from './generated/operations.ts';
export type { control, data, Inputs, models, OperationName, Outputs } from './generated/types.ts';
export { clientTokenOf, inputFingerprint } from './idempotency.ts';
export { LinearPattern } from './linear/linear-pattern.ts';
export { UnsupportedPatternError } from './linear/pattern-syntax.ts';
export type { Plane } from './model.ts';
export type { Operation } from './operation.ts';
export type { ListInput, PageScope, Paginator, WantedPage } from './pagination.ts';
export { createPaginator } from './pagination.ts';
export type { Relaxation } from './relaxations.ts';
export { relaxations } from './relaxations.ts';
export { requestIdHeader } from './request-id.ts';
export type { ArnHome, ResourceKind, ResourceName } from './resource-arn.ts';
export { parseResourceArn, resourceArn, resourceKinds } from './resource-arn.ts';
export type { RouteMatch } from './router.ts';
export { matchRoute } from './router.ts';
export type { DocumentValue, EventStream, OneOf, StreamingBlob } from './wire-types.ts';
