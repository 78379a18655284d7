/** The same answer; `done` is called once its body has ended, failed, or is wanted no more. */
export function whenAnswered(answer: Response, done: () => void): Response {
  const { body, status, headers } = answer;
  if (!body) {
    done();
    return answer;
  }
  const reader = body.getReader();
  const watched = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const part = await reader.read();
        if (!part.done) return controller.enqueue(part.value);
        done();
        controller.close();
      } catch (error) {
        done();
        controller.error(error);
      }
    },
    cancel(reason) {
      done();
      return reader.cancel(reason);
    },
  });
  return new Response(watched, { status, headers });
}
