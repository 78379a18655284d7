/** Whether a text is what a pattern says, where `*` stands for any characters and `?` for one. Its time is the product of both lengths at most. */
export function isLike(pattern: string, text: string): boolean {
  let at = 0;
  let of = 0;
  let star = -1;
  let from = 0;
  while (of < text.length) {
    if (pattern[at] === '*') {
      star = at++;
      from = of;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[of])) {
      at++;
      of++;
    } else if (star >= 0) {
      at = star + 1;
      of = ++from;
    } else return false;
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}
