export { ConnectorKind } from './connector-kind.ts';
