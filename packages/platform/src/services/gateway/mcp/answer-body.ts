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

/** The same answer, once the first part of its body is there. */
export async function whenBegun({ body, status, headers }: Response): Promise<Response> {
  if (!body) return new Response(null, { status, headers });
  const reader = body.getReader();
  const first = await reader.read();
  const begun = new ReadableStream<Uint8Array>({
    start(controller) {
      if (first.done) controller.close();
      else controller.enqueue(first.value);
    },
    async pull(controller) {
      const part = await reader.read();
      if (part.done) controller.close();
      else controller.enqueue(part.value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(begun, { status, headers });
}
