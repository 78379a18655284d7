import { CliError } from '../cli-error.ts';
import { adminJson } from '../platform/admin.ts';
import type { Connection } from '../platform/connection.ts';
import { type BaseImage, readBase } from './image-document.ts';
import { lineError } from './instructions.ts';
import type { FromLine } from './plan-image.ts';

/**
 * Lets the platform fetch the image that FROM names. If its registry cannot be reached, the platform replaces an image of a language by one that it makes of its own
 * machine's packages, and `standIn` names the replacement. For other images this is an error.
 */
export async function fetchBase(
  from: FromLine,
  repository: string,
  connection: Connection,
  signal: AbortSignal,
): Promise<{ base: BaseImage; standIn: string | undefined }> {
  const ask = (image: string): Promise<unknown> =>
    adminJson(connection, {
      method: 'POST',
      path: `/repositories/${encodeURIComponent(repository)}/base`,
      body: { image },
      signal,
    });
  const answer = await ask(from.image);
  const why = unreachable(answer);
  if (why === undefined) return { base: checked(from, readBase(from.image, answer)), standIn: undefined };
  const own = machineBase(from.image);
  if (own === undefined)
    throw lineError(
      from.line,
      `${from.image} cannot be fetched. ${why}`,
      'Without a registry, these bases work: FROM node:24, node:22 or python:3.X (any variant), and scratch.',
    );
  const second = await ask(own);
  const alsoNot = unreachable(second);
  if (alsoNot !== undefined) throw new CliError('failure', `${own} cannot be made: ${alsoNot}`);
  return {
    base: checked(from, readBase(own, second)),
    standIn: `${from.image} cannot be reached. The image uses ${own} instead, a base made from packages of the platform’s machine.`,
  };
}

/** `docker.io/library/python:3.12-slim` → `platform/base/python:3.12`; undefined if the machine's packages cannot replace the image. */
export function machineBase(image: string): string | undefined {
  const name = image.replace(
    /^(?:(?:index\.)?docker\.io\/|public\.ecr\.aws\/docker\/|mirror\.gcr\.io\/)?(?:library\/)?/,
    '',
  );
  const [, node] = /^node:(\d{1,3})(?:\.\d+){0,2}(?:-[\w.-]+)?$/.exec(name) ?? [];
  if (node !== undefined) return `platform/base/node:${node}`;
  const [, python] = /^python:(3\.\d{1,3})(?:\.\d+)?(?:-[\w.-]+)?$/.exec(name) ?? [];
  return python === undefined ? undefined : `platform/base/python:${python}`;
}

function checked(from: FromLine, base: BaseImage): BaseImage {
  const { os, architecture } = base.platform;
  const [, wanted] = /^linux\/([a-z0-9]+)/.exec(from.platform ?? '') ?? [];
  if (from.platform !== undefined && wanted !== architecture)
    throw lineError(from.line, `FROM --platform=${from.platform}: the platform runs ${os}/${architecture}.`);
  return base;
}

function unreachable(answer: unknown): string | undefined {
  const why: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'unreachable') : undefined;
  return typeof why === 'string' ? why : undefined;
}
