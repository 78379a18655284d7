import type { Resource } from './resource-store.ts';

/** What a service knows of each of its resources beside its own data. */
export interface ResourceHead {
  arn: string;
  accountId: string;
  id: string;
  name: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** A resource as its service knows it: the data that it keeps, beside what all kinds have. */
export function fromResource<Data>(resource: Resource<Data>): Data & ResourceHead {
  const { arn, accountId, id, name, data } = resource;
  return { ...data, arn, accountId, id, name, ...timesOf(resource) };
}

/** When it was made and last changed, in milliseconds since the epoch. */
export function timesOf({ createdAt, updatedAt }: Pick<Resource<unknown>, 'createdAt' | 'updatedAt'>): {
  createdAt: number;
  updatedAt: number;
} {
  return { createdAt: createdAt.getTime(), updatedAt: updatedAt.getTime() };
}
