export { createLogger, type LoggerOptions, logFormat } from './logger.ts';
export { createMetrics, type Metrics, type RequestMetrics, type Timer } from './metrics.ts';
export { redact, redacted, redactText } from './redact.ts';
