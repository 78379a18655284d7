/** Put a script tag into a page: before `</body>`, else before `</html>`, else at the end. */
export function injectScript(html: string, source: string): string {
  const tag = `<script src="${source}"></script>`;
  for (const end of [/<\/body\s*>(?![\s\S]*<\/body)/i, /<\/html\s*>(?![\s\S]*<\/html)/i]) {
    const at = html.search(end);
    if (at !== -1) return html.slice(0, at) + tag + html.slice(at);
  }
  return html + tag;
}
