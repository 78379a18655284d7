export { createLogger, logFormat } from './logger.ts';
export { createMetrics, type Metrics, type RequestMetrics } from './metrics.ts';
