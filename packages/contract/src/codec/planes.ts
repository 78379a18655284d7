import { contractModel, type Plane, type PlaneModel } from '../model.ts';
import { type Checker, checkers } from './checker.ts';
import { jsonReaders, type Reader } from './json-reader.ts';
import { jsonWriters, type Writer } from './json-writer.ts';

/** The compiled codec of one plane: by shape name, how to read, write and check a value. */
export interface PlaneCodec {
  readonly model: PlaneModel;
  reader(shape: string): Reader;
  writer(shape: string): Writer;
  checker(shape: string): Checker;
}

/** Compiles a plane's codec; each shape's functions are made when they are first used. */
export function compilePlane(plane: Plane, model: PlaneModel): PlaneCodec {
  return { model, reader: jsonReaders(model), writer: jsonWriters(model), checker: checkers(plane, model) };
}

const compiled: Partial<Record<Plane, PlaneCodec>> = {};

/** The codec of the published model, compiled once per process. */
export function planeCodec(plane: Plane): PlaneCodec {
  compiled[plane] ??= compilePlane(plane, contractModel().planes[plane]);
  return compiled[plane];
}
