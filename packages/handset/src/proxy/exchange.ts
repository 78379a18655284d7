/** What one interaction cost. Bytes are those of the bodies on the wire, after compression. */
export interface Exchange {
  readonly kind: 'local' | 'round trip' | 'first load' | 'reload' | 'failed';
  readonly visit: string;
  /** Such as `click` or `swipe-left`. */
  readonly type: string;
  /** What was touched, the shortcuts that answered, or why it failed. */
  readonly label: string;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Bytes of the document before compression. */
  readonly documentBytes: number;
  readonly milliseconds: number;
}
