import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import { BrokenPartError, type Place } from './files.ts';

/** Where an operation's requests go: the first of `servers` that is HTTP, without its closing slash. Throws `BrokenPartError` for none. */
export function serverOf(servers: DocumentValue | undefined, baseUrl: string | undefined, place: Place): string {
  const given: DocumentValue[] = Array.isArray(servers) && servers.length > 0 ? servers : [{ url: '/' }];
  let why = 'none of them has a URL';
  for (const server of given) {
    if (!isObject(server) || typeof server.url !== 'string') continue;
    const url = urlOf(filled(server.url, server.variables), baseUrl);
    if (typeof url !== 'string') return `${url.origin}${url.pathname === '/' ? '' : url.pathname}`;
    why = url;
  }
  throw new BrokenPartError(`No server can be called: ${why}.`, place);
}

/** Variables are what the document says by default. They are no arguments: the caller of a tool does not choose the host. */
function filled(template: string, variables: DocumentValue | undefined): string {
  return template.replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = isObject(variables) ? own(variables, name) : undefined;
    const value = isObject(variable) ? variable.default : undefined;
    return typeof value === 'string' || typeof value === 'number' ? String(value) : whole;
  });
}

/** The URL, or why it cannot be called. */
function urlOf(text: string, baseUrl: string | undefined): URL | string {
  const shown = text.slice(0, 200);
  if (text.includes('{')) return `${shown} has a variable without a default`;
  let url: URL;
  try {
    url = baseUrl === undefined ? new URL(text.startsWith('//') ? `https:${text}` : text) : new URL(text, baseUrl);
  } catch {
    return `${shown} is not a URL${baseUrl === undefined ? ', and where the document came from is not known' : ''}`;
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return `${shown} is not HTTP`;
  if (url.username !== '' || url.password !== '') return 'it names a user';
  url.pathname = url.pathname.replace(/\/{2,}/g, '/');
  if (url.pathname.endsWith('/')) url.pathname = url.pathname.slice(0, -1);
  return url;
}
