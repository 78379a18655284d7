export { LambdaKind } from './lambda-kind.ts';
