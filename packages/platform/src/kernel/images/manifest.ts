import type { ImageRunConfig } from '../sandbox/host-stage.ts';
import type { Platform } from './architecture.ts';
import { isDigest } from './digest.ts';
import { ImageError } from './images.ts';
import { MEDIA } from './media-types.ts';

/** OCI image spec, content descriptor. */
export interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  platform?: Platform;
  annotations?: Record<string, string>;
}

export interface ImageManifest {
  kind: 'image';
  mediaType: string;
  config: Descriptor;
  layers: Descriptor[];
}

export interface ImageIndex {
  kind: 'index';
  mediaType: string;
  manifests: Descriptor[];
}

/** The part of an image config document that this platform reads. */
export interface ImageConfig {
  platform: Platform;
  run: ImageRunConfig;
}

const MOST_LAYERS = 500;
const MOST_MANIFESTS = 2000;
const LONGEST_TEXT = 128 * 1024;

/**
 * Reads an image manifest or index, OCI or Docker v2 schema 2; `contentType` decides when the document names no
 * `mediaType` itself. Throws `ImageError('invalid')`.
 */
export function parseManifest(bytes: Uint8Array, contentType?: string): ImageManifest | ImageIndex {
  const document = parseObject(bytes, 'manifest');
  const given = contentType?.split(';')[0]?.trim().toLowerCase();
  const named = typeof document.mediaType === 'string' ? document.mediaType : undefined;
  const mediaType = named ?? (given && MEDIA.manifests.has(given) ? given : undefined) ?? guess(document);
  if (document.schemaVersion !== 2) {
    throw invalid('the manifest is not schema version 2; push the image again with a current tool');
  }
  if (MEDIA.imageManifests.has(mediaType)) {
    if ('manifests' in document) throw invalid('the manifest claims to be an image and an index at once');
    const layers = list(document.layers, 'layers', MOST_LAYERS).map((layer) => descriptor(layer, 'layer'));
    return { kind: 'image', mediaType, config: descriptor(document.config, 'config'), layers };
  }
  if (MEDIA.indexes.has(mediaType)) {
    if ('layers' in document || 'config' in document)
      throw invalid('the manifest claims to be an image and an index at once');
    const manifests = list(document.manifests, 'manifests', MOST_MANIFESTS).map((item) => descriptor(item, 'manifest'));
    return { kind: 'index', mediaType, manifests };
  }
  throw invalid(`"${mediaType.slice(0, 100)}" is not an image manifest`);
}

/** Reads an image config document. Throws `ImageError('invalid')`. */
export function parseConfig(bytes: Uint8Array): ImageConfig {
  const document = parseObject(bytes, 'image config');
  const { os, architecture, variant } = document;
  if (typeof os !== 'string' || typeof architecture !== 'string' || architecture === '') {
    throw invalid('the image config names no os or architecture');
  }
  const config = isObject(document.config) ? document.config : {};
  return {
    platform: { os, architecture, ...(typeof variant === 'string' && variant !== '' ? { variant } : {}) },
    run: {
      entrypoint: texts(config.Entrypoint, 'Entrypoint'),
      cmd: texts(config.Cmd, 'Cmd'),
      env: texts(config.Env, 'Env').filter((line) => line.indexOf('=') > 0),
      workingDir: text(config.WorkingDir, 'WorkingDir') || '/',
      user: text(config.User, 'User'),
    },
  };
}

function guess(document: Record<string, unknown>): string {
  if ('manifests' in document) return MEDIA.ociIndex;
  return 'layers' in document && 'config' in document ? MEDIA.ociManifest : 'unknown';
}

function descriptor(value: unknown, what: string): Descriptor {
  if (!isObject(value)) throw invalid(`a ${what} descriptor is not an object`);
  const { mediaType, digest, size, platform, annotations } = value;
  if (typeof mediaType !== 'string' || mediaType.length > 255) throw invalid(`a ${what} descriptor has no mediaType`);
  if (typeof digest !== 'string' || !isDigest(digest)) throw invalid(`a ${what} descriptor has no sha256 digest`);
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0)
    throw invalid(`a ${what} descriptor has no valid size`);
  return {
    mediaType,
    digest,
    size,
    ...(isObject(platform) ? { platform: readPlatform(platform) } : {}),
    ...(isObject(annotations) ? { annotations: readAnnotations(annotations) } : {}),
  };
}

function readPlatform(value: Record<string, unknown>): Platform {
  const { os, architecture, variant } = value;
  return {
    os: typeof os === 'string' ? os : '',
    architecture: typeof architecture === 'string' ? architecture : '',
    ...(typeof variant === 'string' && variant !== '' ? { variant } : {}),
  };
}

function readAnnotations(value: Record<string, unknown>): Record<string, string> {
  const entries = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(entries);
}

function texts(value: unknown, what: string): string[] {
  if (value === undefined || value === null) return [];
  return list(value, what, 10_000).map((item) => text(item, what));
}

function text(value: unknown, what: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string' || value.length > LONGEST_TEXT || value.includes('\0')) {
    throw invalid(`${what} of the image config is not usable text`);
  }
  return value;
}

function list(value: unknown, what: string, most: number): unknown[] {
  if (!Array.isArray(value)) throw invalid(`"${what}" is not a list`);
  if (value.length > most) throw invalid(`"${what}" has ${value.length} items, at most ${most} are allowed`);
  return value;
}

function parseObject(bytes: Uint8Array, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw invalid(`the ${what} is not JSON`);
  }
  if (!isObject(value)) throw invalid(`the ${what} is not a JSON object`);
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(why: string): ImageError {
  return new ImageError('invalid', `This is not a usable image: ${why}.`);
}
