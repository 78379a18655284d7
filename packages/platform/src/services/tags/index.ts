import { errors } from '@agentplatform/contract';
import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { TagStore } from './tag-store.ts';

/** What this service serves. */
export const TAG_OPERATIONS = ['TagResource', 'UntagResource', 'ListTagsForResource'] as const;
export type TagOperation = (typeof TAG_OPERATIONS)[number];

/** Tags on every kind of resource, by its ARN. */
export function createTagsService(deps: { database: Database }): Service<TagOperation, TagStore> {
  const store = new TagStore(deps.database);
  const resource = (input: { resourceArn: string }): string => input.resourceArn;
  const missing = (arn: string) => errors.resourceNotFound(`There is no resource ${arn} in this account.`);

  return {
    operations: {
      TagResource: {
        resource,
        async handle({ resourceArn, tags }, ctx) {
          const outcome = await store.set(ctx.accountId, resourceArn, tags);
          if (outcome === 'missing') throw missing(resourceArn);
          if (outcome === 'too-many')
            throw errors.quota(`${resourceArn} would have more than 50 tags.`, {
              remedy: 'Remove some with UntagResource.',
            });
          return {};
        },
      },
      UntagResource: {
        resource,
        async handle({ resourceArn, tagKeys }, ctx) {
          if (!(await store.remove(ctx.accountId, resourceArn, tagKeys))) throw missing(resourceArn);
          return {};
        },
      },
      ListTagsForResource: {
        resource,
        async handle({ resourceArn }, ctx) {
          const tags = await store.get(ctx.accountId, resourceArn);
          if (!tags) throw missing(resourceArn);
          return { tags };
        },
      },
    },
    port: store,
    start: async () => undefined,
    stop: async () => undefined,
  };
}
