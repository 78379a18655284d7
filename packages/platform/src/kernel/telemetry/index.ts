export { loadMetricsExport, loadOtlpTracer } from './load-otlp.ts';
export { createLogger, logFormat } from './logger.ts';
export { createMetrics, type Gauge, type Metrics, type RequestMetrics } from './metrics.ts';
export { RecordedSpan, type SpanKeeper } from './recorded-span.ts';
export { redactText } from './redact.ts';
export { NO_SPAN, type Span } from './span.ts';
export { isTraceHeader, TRACE_HEADERS, type TraceContext, traceHeaders } from './trace-context.ts';
export { errorCodeOf, inSpan, NO_TRACER, type Tracer } from './tracer.ts';
