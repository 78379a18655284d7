import { type control, errors } from '@agentplatform/contract';

/** The place of a session's identifier in a request. */
const HEADER = /^\$(?:\.)?context\.header\.([A-Za-z0-9_-]+)$/;
const NAME = /^[A-Za-z0-9_-]+$/;

/** Throws ValidationException for what names no header. */
export function checkStickiness(
  { identifier, compositeIdentifier = [] }: control.StickinessConfiguration,
  field: string,
): void {
  if (!HEADER.test(identifier))
    throw errors.invalidField(`${field}.identifier`, 'must name a header, such as $context.header.x-session-id');
  for (const [i, one] of compositeIdentifier.entries())
    if (headerOf(one) === undefined)
      throw errors.invalidField(
        `${field}.compositeIdentifier[${i}]`,
        'must name a header, such as $context.header.x-tenant',
      );
}

/** What a request is recognized by as one of a session; undefined where it does not say its session. */
export function sessionOf(
  { identifier, compositeIdentifier = [] }: control.StickinessConfiguration,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | undefined {
  const values = [identifier, ...compositeIdentifier].map((one) => {
    const name = headerOf(one);
    return name === undefined ? undefined : headers[name];
  });
  return values.every((value) => value !== undefined) ? JSON.stringify(values) : undefined;
}

function headerOf(expression: string): string | undefined {
  return (HEADER.exec(expression)?.[1] ?? (NAME.test(expression) ? expression : undefined))?.toLowerCase();
}
