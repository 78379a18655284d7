/** Where the files of an access point are. */
export type Place =
  | { kind: 'directory'; path: string }
  /** `host:/export`, as mount(8) names it. */
  | { kind: 'nfs'; source: string };

const ENTRY = /^(fsap-[0-9a-f]{8,40})=(?:(\/[^\0]*)|nfs:\/\/([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(\/[^\0]*))$/;

/** What a list of places looks like, for the configuration. */
export const PLACES = /^fsap-[0-9a-f]{8,40}=(\/|nfs:\/\/)[^,\0]+(,\s*fsap-[0-9a-f]{8,40}=(\/|nfs:\/\/)[^,\0]+)*$/;

/** Reads `fsap-0123456789abcdef0=/srv/shared,fsap-…=nfs://host/export`. Throws an Error that names the entry which is none. */
export function readPlaces(text: string): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const [, id, path, host, exported] = ENTRY.exec(entry) ?? [];
    const place: Place | undefined =
      path !== undefined
        ? { kind: 'directory', path }
        : host !== undefined
          ? { kind: 'nfs', source: `${host}:${exported}` }
          : undefined;
    if (id === undefined || place === undefined) throw new Error(`"${entry.slice(0, 100)}" is no shared place`);
    if (places.has(id)) throw new Error(`${id} is named twice`);
    places.set(id, place);
  }
  return places;
}
