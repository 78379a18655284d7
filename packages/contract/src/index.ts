export type { ErrorCode, ErrorKind } from './error-catalogue.ts';
export { errorCatalogue, isErrorCode } from './error-catalogue.ts';
export type { ErrorOptions, FieldProblem, ValidationReason } from './errors.ts';
export { errors, ServiceError } from './errors.ts';
export { modelVersion, operations } from './generated/operations.ts';
export type { control, data, Inputs, OperationName, Outputs } from './generated/types.ts';
export type { Plane } from './model.ts';
export type { Operation } from './operation.ts';
export type { DocumentValue, EventStream, OneOf, StreamingBlob } from './wire-types.ts';
