import type { Traits } from './model.ts';

/** How a service of a model is spoken to. */
export interface Protocol {
  name: 'restJson' | 'restXml' | 'awsJson' | 'awsQuery';
  /** Of bodies that are no blob and no text. */
  mediaType: string;
  /** How timestamps stand in bodies. */
  timestamps: 'epoch-seconds' | 'date-time';
}

const REST_JSON: Protocol = { name: 'restJson', mediaType: 'application/json', timestamps: 'epoch-seconds' };

/** The best first. */
const PROTOCOLS: readonly [trait: string, protocol: Protocol][] = [
  ['aws.protocols#restJson1', REST_JSON],
  ['alloy#simpleRestJson', REST_JSON],
  [
    'aws.protocols#awsJson1_1',
    { name: 'awsJson', mediaType: 'application/x-amz-json-1.1', timestamps: 'epoch-seconds' },
  ],
  [
    'aws.protocols#awsJson1_0',
    { name: 'awsJson', mediaType: 'application/x-amz-json-1.0', timestamps: 'epoch-seconds' },
  ],
  ['aws.protocols#restXml', { name: 'restXml', mediaType: 'application/xml', timestamps: 'date-time' }],
  [
    'aws.protocols#awsQuery',
    { name: 'awsQuery', mediaType: 'application/x-www-form-urlencoded', timestamps: 'date-time' },
  ],
];

/** The protocol of a service; the first that is spoken here, and REST with JSON where it names none. Undefined for others. */
export function protocolOf(traits: Traits): Protocol | undefined {
  const found = PROTOCOLS.find(([trait]) => traits[trait] !== undefined);
  if (found) return found[1];
  return Object.keys(traits).some((trait) => /protocols#|^aws[.]protocols/.test(trait)) ? undefined : REST_JSON;
}
