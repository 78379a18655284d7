import { decimal, integer, optionalUrl, setting } from './setting.ts';

const EXPECTED = 'names and values such as api-key=abc,x-tenant=7, the values percent-encoded where they hold a comma';
const HEADER = /^([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*)$/;
/** What the exporter says itself. */
const NOT_SET = /^(?:host|connection|content-type|content-length|transfer-encoding|expect|upgrade|te|trailer)$/i;

/** Traces and metrics, which leave the platform by OTLP over HTTP. */
export const telemetry = {
  otlpEndpoint: optionalUrl({
    about:
      'Base URL of an OpenTelemetry receiver for the platform’s own spans and metrics. The platform sends them by OTLP over HTTP (protobuf) to /v1/traces and /v1/metrics below it. The URL may be private. If not set, nothing is traced or sent.',
    expected: 'a URL such as http://localhost:4318',
  }),
  otlpHeaders: setting<Record<string, string>>(
    'name=value[,…]',
    {
      about: 'Headers for telemetry.otlpEndpoint, in the format of OTEL_EXPORTER_OTLP_HEADERS.',
      default: {},
      secret: true,
    },
    readHeaders,
  ),
  metricsSeconds: integer({
    about: 'How often metrics are sent to telemetry.otlpEndpoint. 0 = never, for a receiver that accepts only spans.',
    unit: 's',
    default: 60,
    min: 0,
    max: 3600,
  }),
  sampleRatio: decimal({
    about:
      'Share of the traces that is recorded, chosen by trace id. The sampling flag of callers has no effect. Set the same value on all servers.',
    default: 1,
    min: 0,
    max: 1,
  }),
};

/** Throws as `Setting.read` does, and never repeats a value, which is a secret. */
function readHeaders(value: unknown): Record<string, string> {
  // In the file it may be an object.
  if (typeof value === 'object' && value !== null)
    return Object.assign({}, ...Object.entries(value).map(([name, text]) => readHeaders(`${name}=${text}`)));
  if (typeof value !== 'string') throw new Error(`must be ${EXPECTED}`);
  const headers: Record<string, string> = {};
  for (const one of value.split(',')) {
    const [, name, text] = HEADER.exec(one.trim()) ?? [];
    if (name === undefined || text === undefined || NOT_SET.test(name)) throw new Error(`must be ${EXPECTED}`);
    headers[name.toLowerCase()] = decoded(text);
  }
  return headers;
}

function decoded(text: string): string {
  try {
    const value = decodeURIComponent(text);
    if (/^[\t\x20-\x7e]*$/.test(value)) return value;
  } catch {
    // Said below.
  }
  throw new Error(`must be ${EXPECTED}`);
}
