/** What a search found; higher scores are better, 1 is the best there can be. */
export interface Hit {
  id: string;
  score: number;
}
