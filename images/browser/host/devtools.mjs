// A short conversation with the browser.
export class DevTools {
  #socket;
  #next = 0;
  #waiting = new Map();
  /** Hears what the browser says unasked: its method and parameters. */
  onEvent = () => undefined;

  static async open({ port, path }) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error('Chromium does not answer.'));
    });
    return new DevTools(socket);
  }

  constructor(socket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const { id, result, error, method, params } = JSON.parse(data);
      if (method !== undefined) this.onEvent(method, params);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result);
    };
    socket.onclose = () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('Chromium is gone.'));
      this.#waiting.clear();
    };
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#next;
    const waiting = Promise.withResolvers();
    this.#waiting.set(id, waiting);
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    return waiting.promise;
  }

  close() {
    this.#socket.close();
  }
}
