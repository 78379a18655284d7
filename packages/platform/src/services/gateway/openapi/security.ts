import type { DocumentValue } from '@agentplatform/contract';
import type { CredentialPlace } from '../http-tools/http-tool.ts';
import { isObject } from '../tools/json-pointer.ts';
import { BrokenPartError, type Files } from './files.ts';

/** A security scheme of a document, and where it has its credential. */
export interface SecurityScheme extends CredentialPlace {
  scheme: string;
  /** Requests are signed (`x-amazon-apigateway-authtype: awsSigv4`). */
  signed: boolean;
  apiKey: boolean;
}

/** The security schemes that a document declares. A scheme that cannot be read has no place for a credential. */
export function securitySchemes(root: DocumentValue, files: Files): SecurityScheme[] {
  const components = isObject(root) && isObject(root.components) ? root.components : {};
  const schemes = isObject(components.securitySchemes) ? components.securitySchemes : {};
  return Object.entries(schemes).flatMap(([scheme, value]): SecurityScheme[] => {
    const read = schemeOf(value, files);
    if (!read) return [];
    const { type, in: place, name, 'x-amazon-apigateway-authtype': authtype } = read;
    const apiKey = type === 'apiKey';
    const marks = { scheme, apiKey, signed: authtype === 'awsSigv4' };
    if (!apiKey) return [{ ...marks, in: 'header', name: 'authorization' }];
    return (place === 'header' || place === 'query' || place === 'cookie') && typeof name === 'string'
      ? [{ ...marks, in: place, name }]
      : [];
  });
}

function schemeOf(
  value: DocumentValue | undefined,
  files: Files,
): { [key: string]: DocumentValue | undefined } | undefined {
  try {
    const found = files.follow({
      value: value ?? null,
      place: { file: files.main, pointer: '/components/securitySchemes' },
    });
    return isObject(found.value) ? found.value : undefined;
  } catch (error) {
    if (error instanceof BrokenPartError) return undefined;
    throw error;
  }
}
