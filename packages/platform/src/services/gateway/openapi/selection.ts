/** Operations that become tools, by path and method. A path ends in `*` where all that begin so are meant. */
export interface ToolFilter {
  filterPath: string;
  methods: readonly string[];
}

/** What an operation's tool is called instead. */
export interface ToolOverride {
  path: string;
  method: string;
  name: string;
  description?: string;
}

/** The operations of a REST API that become tools, and the names of the tools (`apiGatewayToolConfiguration`). */
export interface ToolSelection {
  toolFilters: readonly ToolFilter[];
  toolOverrides?: readonly ToolOverride[];
}

/** An operation as it is looked for; the method in capitals. */
export interface OperationName {
  method: string;
  path: string;
}

/** Whether a filter takes the operation. */
export function takes({ filterPath, methods }: ToolFilter, { method, path }: OperationName): boolean {
  if (!methods.some((one) => one.toUpperCase() === method)) return false;
  return filterPath.endsWith('*') ? path.startsWith(filterPath.slice(0, -1)) : path === filterPath;
}

/** What an operation is called instead; undefined for its own name. */
export function overrideOf(
  { toolOverrides = [] }: ToolSelection,
  { method, path }: OperationName,
): ToolOverride | undefined {
  return toolOverrides.find((one) => one.path === path && one.method.toUpperCase() === method);
}

/** Filters and overrides that mean no operation of the document, each as a sentence. */
export function idleParts(selection: ToolSelection, operations: readonly OperationName[]): string[] {
  const filters = selection.toolFilters
    .filter((filter) => !operations.some((operation) => takes(filter, operation)))
    .map(({ filterPath, methods }) => `The filter ${methods.join(', ')} ${filterPath} takes no operation of the API.`);
  const selected = operations.filter((one) => selection.toolFilters.some((filter) => takes(filter, one)));
  const overrides = (selection.toolOverrides ?? [])
    .filter(
      (override) =>
        !selected.some(({ method, path }) => path === override.path && method === override.method.toUpperCase()),
    )
    .map(({ method, path }) => `The override of ${method} ${path} is for no operation that the filters take.`);
  return [...filters, ...overrides];
}
