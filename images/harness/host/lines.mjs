// Messages between the platform and the loop: each a line of JSON, both ways on one request.

/** Longest line: a result of a tool, or a whole conversation. */
const MOST_CHARS = 64 * 2 ** 20;

/** The messages of a stream of lines. Throws for a line that is too long, or is no JSON. */
export async function* readLines(stream) {
  let rest = '';
  stream.setEncoding('utf8');
  for await (const piece of stream) {
    rest += piece;
    if (rest.length > MOST_CHARS) throw new Error(`a message is longer than ${MOST_CHARS} characters`);
    let from = 0;
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n', from)) {
      yield JSON.parse(rest.slice(from, end));
      from = end + 1;
    }
    rest = rest.slice(from);
  }
}

/** The loop's end of one turn: it asks the platform, and hears the answers in the order in which they come. */
export class PlatformLink {
  #next = 1;
  #waiting = new Map();
  #send;
  #over = false;

  constructor(send) {
    this.#send = send;
  }

  /** Says something that needs no answer. */
  tell(message) {
    this.#send(`${JSON.stringify(message)}\n`);
  }

  /** Asks, and gives the answers as they come; the last one has `last`. */
  async *ask(message) {
    const call = this.#next++;
    const inbox = { messages: [], wake: undefined };
    this.#waiting.set(call, inbox);
    try {
      this.tell({ ...message, call });
      for (;;) {
        while (inbox.messages.length === 0) {
          if (this.#over) throw new Error('the platform has ended the turn');
          await new Promise((resolve) => {
            inbox.wake = resolve;
          });
        }
        const answer = inbox.messages.shift();
        yield answer;
        if (answer.last) return;
      }
    } finally {
      this.#waiting.delete(call);
    }
  }

  /** Asks for the one answer that there is. */
  async askOnce(message) {
    for await (const answer of this.ask(message)) return answer;
    throw new Error('no answer came');
  }

  /** Nothing is answered any more: who waits is told. */
  end() {
    this.#over = true;
    for (const { wake } of this.#waiting.values()) wake?.();
  }

  /** What the platform said. */
  take(message) {
    const inbox = this.#waiting.get(message.call);
    if (!inbox) return;
    inbox.messages.push(message);
    inbox.wake?.();
  }
}
