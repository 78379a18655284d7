/** A model as clients see it. */
export interface ListedModel {
  id: string;
  /** Who serves it. */
  ownedBy: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** A list of models in the forms of OpenAI and Anthropic at once: each client finds its own members. */
export function modelList(models: readonly ListedModel[]): object {
  const data = models.map(modelEntry);
  return { object: 'list', data, has_more: false, first_id: models[0]?.id ?? null, last_id: models.at(-1)?.id ?? null };
}

/** One model of the list. */
export function modelEntry({ id, ownedBy, createdAt }: ListedModel): object {
  return {
    id,
    ...{ object: 'model', created: Math.floor(createdAt / 1000), owned_by: ownedBy },
    ...{ type: 'model', display_name: id, created_at: new Date(createdAt).toISOString() },
  };
}
